"""Facts: what is committed is told to plugins, in order, off the turn's path."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, cast

import structlog

from clew.agent.current import hook_session
from clew.core.route import Route
from clew.errors import StoreError
from clew.store.transactions import marks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.core.ids import SessionId
    from clew.core.inbox import InboxItem
    from clew.hooks.manager import PluginManager
    from clew.store.contract import Store

log = structlog.get_logger(__name__)

FINALIZE = "on_session_finalize"
RESET = "on_session_reset"


class Facts:
    """One process's line of facts; a fact that is worth it is marked in the store once told."""

    def __init__(self, store: Store, plugins: PluginManager) -> None:
        self._store, self.plugins = store, plugins
        self._line: asyncio.Queue[tuple[str, Mapping[str, object], str | None]] = asyncio.Queue()

    def tell(self, hook: str, facts: Mapping[str, object], *, subject: str | None = None) -> None:
        """Put a fact in the line; with a ``subject`` each plugin is told once, over restarts."""
        if self.plugins.implements_hook(hook):
            self._line.put_nowait((hook, facts, subject))

    def ended(self, item: InboxItem) -> None:
        """A session's end was carried out: it is finalised, and then its successor told."""
        said = json.loads(item.note or "{}")
        platform = said.get("platform") or platform_of(item.route)
        if said.get("session") is not None:
            over = {"session_id": said["session"], "platform": platform}
            self._line.put_nowait((FINALIZE, over, item.id))
        if said.get("next") is not None:
            opened = {"session_id": said["next"], "platform": platform}
            self._line.put_nowait((RESET, opened, item.id))
        # The last in line: without it, it is all told again after a crash to those that lack it.
        self._line.put_nowait((marks.ALL, {}, item.id))

    def stopping(self, session: SessionId, platform: str) -> None:
        """A session's turn is let go because the process stops; it goes on after the restart."""
        self.tell(FINALIZE, {"session_id": session, "platform": platform})

    async def catch_up(self) -> None:
        """Tell the ends that a process which died did not tell."""
        for item in await self._store.read(marks.list_unnotified_ends):
            self.ended(item)

    async def run(self) -> None:
        """Work the line off, for ever."""
        while True:
            hook, facts, subject = await self._line.get()
            session = cast("SessionId | None", facts.get("session_id"))
            try:
                with hook_session(session):
                    await self._tell(hook, facts, subject)
            finally:
                self._line.task_done()

    async def drain(self, seconds: float) -> None:
        """Wait until the line is empty, but not longer."""
        try:
            async with asyncio.timeout(seconds):
                await self._line.join()
        except TimeoutError:
            log.warning("facts_left", count=self._line.qsize())

    async def _tell(self, hook: str, facts: Mapping[str, object], subject: str | None) -> None:
        if subject is None:
            await self.plugins.notify_plugins(hook, facts)
            return
        try:
            known = await self._store.read(marks.list_notified_plugins, hook, subject)
            if hook == marks.ALL:
                await self._store.write(marks.add_mark, marks.ALL, marks.ALL, subject)
                return
            new = (plugin for plugin in self.plugins.plugin_names if plugin not in known)
            # Side by side: one that hangs does not hold up what the others are told.
            await asyncio.gather(*(self._tell_once(each, hook, facts, subject) for each in new))
        except StoreError as error:
            log.warning("fact_not_marked", hook=hook, subject=subject, error=str(error))

    async def _tell_once(
        self, plugin: str, hook: str, facts: Mapping[str, object], subject: str
    ) -> None:
        await self.plugins.notify_plugins(hook, facts, plugin=plugin)
        await self._store.write(marks.add_mark, plugin, hook, subject)


def platform_of(route: str | None) -> str:
    """The platform that a route belongs to."""
    return "local" if route is None else Route.parse(route).platform
