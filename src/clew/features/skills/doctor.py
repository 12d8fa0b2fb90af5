"""The check of ``clew doctor``: folders that cannot be used as skills."""

# ruff: noqa: PLC0415  (declared by every command, needed by few)

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.core.scope import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clew.config.settings import Settings
    from clew.core.doctor_finding import DoctorFinding

#: Folders that are named.
_MOST: Final = 5


class SkillsCheck:
    """Looks through the folders of skills; is told the settings when they are checked."""

    def __init__(self) -> None:
        self._settings: Settings | None = None

    def keep_settings(self, settings: Settings) -> Iterable[str]:
        """Keep the settings; there is nothing in them that could be wrong."""
        self._settings = settings
        return ()

    async def run(self) -> Sequence[DoctorFinding]:
        """Return how many skills there are, if any, and which folders cannot be used."""
        from clew.features.skills.library import list_sources

        if self._settings is None:
            return ()
        sources = list_sources(self._settings, LOCAL)
        if not any(one.folder.is_dir() for one in sources):
            return ()
        import asyncio

        from clew.core.doctor_finding import ok, warn
        from clew.features.skills.scanning import scan_sources

        shelf = await asyncio.to_thread(scan_sources, sources)
        found = [
            warn("skills", f"{one.folder}: {one.reason}", fix="clew skills check")
            for one in shelf.problems
        ]
        more = len(found) - _MOST
        rest = [warn("skills", f"{more} more folders cannot be used", fix="clew skills check")]
        count = ok("skills", f"{len(shelf.skills)} can be used; clew skills list shows the trust")
        usable = [count] if shelf.skills else []
        return [*usable, *found[:_MOST], *(rest if more > 0 else ())]
