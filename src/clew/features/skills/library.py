"""The skills of a scope: what is in its folders, and what of it is trusted."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Final

from clew.config.workspaces import find_workspace
from clew.core.tool_declaration import ToolDeclaration
from clew.errors import NotFound
from clew.features.skills import trust
from clew.features.skills.header import normalize_name
from clew.features.skills.scanning import Skill, SkillShelf, SkillSource, scan_sources
from clew.plugin.declarations import SkillFolder
from clew.plugin.registry import Features
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clew.config.settings import Settings
    from clew.plugin.registry import Declared
    from clew.store.contract import Store, Tx

#: In ``CLEW_HOME``, and in a workspace.
HOME_FOLDER, WORKSPACE_FOLDER = "skills", ".agents/skills"
HOME: Final = "home"


class SkillLibrary(Record):
    """The skills of a scope at one moment."""

    shelf: SkillShelf
    #: The trusted digest, by source and name.
    trusted_digests: Mapping[tuple[str, str], str]

    def is_trusted(self, skill: Skill) -> bool:
        """Return whether a person trusts these bytes."""
        return self.trusted_digests.get((skill.source.name, skill.name)) == skill.digest

    def describe_state(self, skill: Skill) -> str:
        """Return ``trusted``, ``changed`` since it was, or ``new``."""
        if self.is_trusted(skill):
            return "trusted"
        return "changed" if (skill.source.name, skill.name) in self.trusted_digests else "new"

    @property
    def trusted(self) -> list[Skill]:
        """The trusted skills for this system, by name."""
        return [
            one for one in self.shelf.skills.values() if self.is_trusted(one) and fits_system(one)
        ]

    @property
    def listed(self) -> list[Skill]:
        """The skills that the model is told of."""
        return [one for one in self.trusted if not one.header.is_hidden]

    def get(self, name: str) -> Skill:
        """
        Return a skill, trusted or not.

        :raises NotFound: if there is none of that name
        """
        found = self.shelf.skills.get(normalize_name(name))
        if found is None:
            raise NotFound("skill", name)
        return found


def fits_system(skill: Skill) -> bool:
    """Return whether a skill is meant for systems like this one."""
    return not skill.header.systems or sys.platform in skill.header.systems


def list_sources(settings: Settings, scope: str) -> list[SkillSource]:
    """Return the folders of a scope, the first one first where two have a skill of one name."""
    workspace = find_workspace(settings, scope).root
    features = settings.loaded_features
    plugins: Sequence[Declared[SkillFolder]] = ()
    if isinstance(features, Features):
        features.finish()  # a command that only lists skills has not opened an application
        plugins = features.get(SkillFolder)
    return [
        SkillSource(name=HOME, folder=settings.home.resolve() / HOME_FOLDER),
        *(SkillSource(name=f"plugin {one.owner}", folder=one.value.path) for one in plugins),
        SkillSource(
            name=f"workspace {workspace}", folder=workspace / WORKSPACE_FOLDER, is_workspace=True
        ),
    ]


def list_tool_names(settings: Settings) -> list[str]:
    """Return the names of the tools of all features; none where they are not known."""
    features = settings.loaded_features
    if not isinstance(features, Features):
        return []
    return [one.name for one in features.values(ToolDeclaration)]


def read_library(t: Tx, sources: Sequence[SkillSource]) -> SkillLibrary:
    """Return the skills of folders, within a transaction: for commands, which nobody waits for."""
    return SkillLibrary(shelf=scan_sources(sources), trusted_digests=trust.list_trusted(t))


async def load_library(store: Store, sources: Sequence[SkillSource]) -> SkillLibrary:
    """Return the skills of folders."""
    shelf = await asyncio.to_thread(scan_sources, sources)
    return SkillLibrary(shelf=shelf, trusted_digests=await store.read(trust.list_trusted))
