"""The chat commands ``/skills``, ``/skills trust`` and ``/skills untrust``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import NotFound, UsageError
from clew.features.skills import front, loaded, trust
from clew.features.skills.header import normalize_name
from clew.features.skills.library import list_sources, load_library
from clew.features.skills.trust import SHORT
from clew.features.skills.wording import format_library, format_review

if TYPE_CHECKING:
    from clew.features.skills.library import SkillLibrary
    from clew.plugin import CommandCall


async def run_skills(call: CommandCall, argument: str) -> str:
    """List the skills, or show one."""
    library = await _load(call)
    if not argument.strip():
        return format_library(library, loaded=await _list_loaded(call))
    return format_review(await front.review(call.services, library, argument.strip()))


async def run_trust(call: CommandCall, argument: str) -> str:
    """Show a skill; with its digest, trust it as it was shown."""
    words = argument.split()
    if not 1 <= len(words) <= 2:
        raise UsageError("/skills trust needs the name of a skill: /skills lists them")
    library = await _load(call)
    skill = library.get(words[0])
    if len(words) == 1:
        review = await front.review(call.services, library, skill.name)
        if library.is_trusted(skill):
            return format_review(review)
        return (
            f"{format_review(review)}\n"
            f"/skills trust {skill.name} {skill.digest[:SHORT]} trusts it as it is now."
        )
    await call.services.store.write(trust.trust, skill, digest=words[1], by=name_writer(call))
    return f"{skill.name} is trusted. New conversations are told of it; /new begins one."


async def run_untrust(call: CommandCall, argument: str) -> str:
    """Take the trust in a skill back."""
    name = argument.strip()
    if not name:
        raise UsageError("/skills untrust needs the name of a skill: /skills lists them")
    await front.untrust(call.services, name, by=name_writer(call))
    return f"{name} is not trusted any more: it cannot be loaded."


async def run_unload(call: CommandCall, argument: str) -> str:
    """End a skill that was loaded in the conversation."""
    name = normalize_name(argument)
    if not name:
        raise UsageError("/skills unload needs the name of a skill: /skills lists them")
    if call.conversation_id is None:
        raise NotFound("loaded skill", name)
    await call.services.store.write(loaded.drop_loaded, call.conversation_id, name)
    return f"{name} is not in force any more. What was said stays until a new session begins."


def name_writer(call: CommandCall) -> str:
    """Return who writes, as trust is recorded with it."""
    if call.who is None:
        return "local"
    return f"{call.who.account.channel}:{call.who.user}"


async def _list_loaded(call: CommandCall) -> list[str]:
    if call.conversation_id is None:
        return []
    found = await call.services.store.read(loaded.list_loaded, call.conversation_id)
    return [one.name for one in found]


async def _load(call: CommandCall) -> SkillLibrary:
    return await load_library(
        call.services.store, list_sources(call.services.settings, call.viewer)
    )
