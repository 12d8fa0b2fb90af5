"""Use cases of skills, for people and programs on every front."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from clew.features.skills import trust
from clew.features.skills.header import normalize_name
from clew.features.skills.library import list_tool_names
from clew.features.skills.review import find_remarks, list_tool_texts, review_skill

if TYPE_CHECKING:
    from clew.config.settings import Settings
    from clew.features.skills.library import SkillLibrary
    from clew.features.skills.review import SkillReview
    from clew.features.skills.scanning import Skill
    from clew.plugin import FeatureContext
    from clew.store.contract import Store


async def review(services: FeatureContext, library: SkillLibrary, name: str) -> SkillReview:
    """
    Return a skill as a person looks at it.

    :raises NotFound: if there is none of that name
    """
    return await review_stored(services.settings, services.store, library, name)


async def review_stored(
    settings: Settings, store: Store, library: SkillLibrary, name: str
) -> SkillReview:
    """Return a skill as a person looks at it, beside a running application."""
    skill = library.get(name)
    before = await store.read(trust.find_trust, skill)
    state = library.describe_state(skill)
    return await asyncio.to_thread(review_skill, skill, state, before, list_tool_names(settings))


async def untrust(services: FeatureContext, name: str, *, by: str) -> None:
    """
    Take the trust in a skill back, also if its files are gone.

    :raises NotFound: if there is none that is trusted
    """
    await services.store.write(trust.untrust, normalize_name(name), by=by)


def describe_skill(library: SkillLibrary, skill: Skill) -> dict[str, Any]:
    """Return a skill of a list as programs get it."""
    return {
        "name": skill.name,
        "description": skill.header.description,
        "source": skill.source.name,
        "folder": str(skill.folder),
        "state": library.describe_state(skill),
        "digest": skill.digest,
        "allowed_tools": list_tool_texts(skill),
    }


def describe_library(library: SkillLibrary) -> dict[str, Any]:
    """Return the skills and problems of a scope as programs get them."""
    return {
        "items": [describe_skill(library, one) for one in library.shelf.skills.values()],
        "problems": [
            {"folder": str(one.folder), "source": one.source.name, "reason": one.reason}
            for one in library.shelf.problems
        ],
    }


def list_remarks(library: SkillLibrary, settings: Settings) -> list[tuple[str, str]]:
    """Return what a person should know about each skill: its name, and a sentence."""
    tools = list_tool_names(settings)
    return [
        (skill.name, remark)
        for skill in library.shelf.skills.values()
        for remark in find_remarks(skill, tools)
    ]
