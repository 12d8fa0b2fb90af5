"""Calls of the tool ``load_skill``: of what a person trusts, and of nothing else."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

from clew.errors import NotFound, UsageError
from clew.features.skills import loaded
from clew.features.skills.catalogue import search_skills
from clew.features.skills.header import normalize_name
from clew.features.skills.library import list_sources, load_library
from clew.features.skills.session_text import format_skill
from clew.plugin import get_turn_context
from clew.sandbox.workspace import Workspace

if TYPE_CHECKING:
    from clew.features.skills.library import SkillLibrary
    from clew.features.skills.scanning import Skill


async def load_skill(name: str) -> str:
    """
    Return the instructions or a file of a skill, or find skills by words.

    :raises NotFound: if there is none that is trusted
    """
    context = get_turn_context()
    if context is None:
        raise UsageError("skills are loaded in turns only")
    services = context.services
    library = await load_library(services.store, list_sources(services.settings, context.scope))
    if name.lstrip().startswith("?"):
        return search_skills(library.listed, name)
    given, _, path = name.strip().partition("/")
    skill = _get_trusted(library, given)
    if path:
        return await asyncio.to_thread(_read_file, skill, path)
    await services.store.write(loaded.record_loaded, context.conversation, skill)
    return format_skill(skill)


def _get_trusted(library: SkillLibrary, name: str) -> Skill:
    wanted = normalize_name(name)
    found = next((one for one in library.trusted if one.name == wanted), None)
    if found is None:
        # The same for one that is not trusted: the model is not told of it.
        raise NotFound("skill", f'{name}; load_skill("?words") searches')
    return found


def _read_file(skill: Skill, path: str) -> str:
    """Return a file of a skill, as it was when its digest was made."""
    known = skill.files.get(path)
    if known is None or known.link is not None:
        raise NotFound("file of the skill", f"{path}; there are {', '.join(skill.files)}"[:2_000])
    content = Workspace(skill.folder).read_file(path)
    if hashlib.sha256(content).hexdigest() != known.digest:
        raise UsageError(f"{path} is being changed")
    if b"\0" in content:
        raise UsageError(f"{path} is not text: its path is {skill.folder / path}")
    return content.decode("utf-8", "replace")
