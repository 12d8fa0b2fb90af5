"""What sessions are told of skills: the catalogue, and those that are in force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.features.skills import loaded, trust
from clew.features.skills.catalogue import compute_budget, render_catalogue
from clew.features.skills.library import list_sources, load_library

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clew.features.skills.library import SkillLibrary
    from clew.features.skills.loaded import LoadedSkill
    from clew.features.skills.scanning import Skill
    from clew.plugin import TurnContext

#: Characters of the skills in force that a session begins with.
MAX_IN_FORCE: Final = 24_000
#: Files of a skill that the model is told.
_MAX_FILES: Final = 40
_IN_FORCE: Final = "These skills were loaded in this conversation and are in force: follow them."


async def render(context: TurnContext) -> str | None:
    """Return what a session is told of skills when it opens, and record what it has found."""
    services = context.services
    library = await load_library(services.store, list_sources(services.settings, context.scope))
    found = list(library.shelf.skills.values())
    if await services.store.read(trust.has_news, found):
        await services.store.write(trust.record_seen, found)
    if await services.store.read(loaded.is_new_branch, context.conversation):
        await services.store.write(loaded.copy_loaded, context.conversation)
    active = await services.store.read(loaded.list_loaded, context.conversation)
    budget = compute_budget(services.settings.model.context_window)
    parts = [render_catalogue(library.listed, budget=budget), render_in_force(library, active)]
    return "\n\n".join(part for part in parts if part) or None


async def has_trusted(context: TurnContext) -> bool:
    """Return whether a skill of the scope's folders is trusted, as it is now or was."""
    services = context.services
    sources = {one.name for one in list_sources(services.settings, context.scope)}
    return any(name in sources for name, _ in await services.store.read(trust.list_trusted))


async def find_folders(context: TurnContext) -> list[Path]:
    """Return the folders of the skills in force; those of the workspace are readable anyway."""
    services = context.services
    active = await services.store.read(loaded.list_loaded, context.conversation)
    if not active:
        return []
    library = await load_library(services.store, list_sources(services.settings, context.scope))
    held = find_in_force(library, active)
    # A link that the agent makes in its workspace could lead a command anywhere.
    return [one.folder for one in held if not one.source.is_workspace]


def find_in_force(library: SkillLibrary, active: Sequence[LoadedSkill]) -> list[Skill]:
    """Return the loaded skills that are still as they were, and trusted."""
    known = {(one.source, one.name, one.digest) for one in active}
    return [one for one in library.trusted if (one.source.name, one.name, one.digest) in known]


def render_in_force(library: SkillLibrary, active: Sequence[LoadedSkill]) -> str | None:
    """Return the text of the loaded skills; of one that has changed, that it is not in force."""
    if not active:
        return None
    held = find_in_force(library, active)
    gone = sorted({one.name for one in active} - {one.name for one in held})
    lines = [_IN_FORCE] if held else []
    left = MAX_IN_FORCE
    for skill in held:
        text = format_skill(skill)
        lines.append(text if len(text) <= left else _cut(skill, text, left))
        left = max(0, left - len(text))
    if gone:
        lines.append(f"No longer in force, do not follow what they said: {', '.join(gone)}.")
    return "\n\n".join(lines)


def _cut(skill: Skill, text: str, left: int) -> str:
    return f'{text[:left]}\n[skill {skill.name}: load_skill("{skill.name}") reads all of it]'


def format_skill(skill: Skill) -> str:
    """Return the instructions of a skill, its folder, and the files that it comes with."""
    others = [path for path in skill.files if path != "SKILL.md"]
    more = [f"… {len(others) - _MAX_FILES} more"] if len(others) > _MAX_FILES else []
    files = ", ".join([*others[:_MAX_FILES], *more])
    lines = [
        f"[skill {skill.name}, in the folder {skill.folder}]",
        skill.body,
        *([f"[files, relative to that folder: {files}]"] if files else []),
        *_format_tools(skill),
    ]
    return "\n".join(lines)


def _format_tools(skill: Skill) -> list[str]:
    allowed = skill.header.allowed_tools
    if allowed is None:
        return []
    known = [one for one in allowed if one.tool is not None]
    named = [f"{one.tool} ({one.command})" if one.command else str(one.tool) for one in known]
    return [f"[calls of other tools than {', '.join(named) or 'none'} ask a person]"]
