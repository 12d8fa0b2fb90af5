"""Watch over the code of one plugin while it runs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import structlog

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from clew.features.hermes.deaths import DeathLog
    from clew.features.hermes.process_guard import ProcessGuard

log = structlog.get_logger(__name__)

#: Sentences that are kept; a plugin that goes on has been named.
_MAX_SENTENCES: Final = 50


class PluginWatch:
    """What is noted around each piece of a plugin's code that runs."""

    def __init__(self, plugin: str, guard: ProcessGuard, deaths: DeathLog) -> None:
        self._plugin, self._guard, self.deaths = plugin, guard, deaths
        #: What the plugin changed in the process, as sentences without a subject.
        self.changes: list[str] = []
        self._is_loaded = False

    @contextmanager
    def running(self) -> Generator[None]:
        """Note that code of the plugin runs in the block, and look at what it leaves."""
        self.deaths.begin()
        try:
            yield
        finally:
            self.deaths.end()
            if self._is_loaded:
                self._look_again()

    def check_load(self) -> None:
        """Put back what the plugin changed when it was loaded; logged once the application runs."""
        self._add(self._guard.restore())
        self._is_loaded = True

    def _look_again(self) -> None:
        for change in self._add(self._guard.look_again()):
            log.warning("hermes_plugin_changed_process", plugin=self._plugin, detail=change)

    def _add(self, found: Iterable[str]) -> list[str]:
        new = [one for one in found if one not in self.changes]
        new = new[: _MAX_SENTENCES - len(self.changes)]
        self.changes += new
        return new
