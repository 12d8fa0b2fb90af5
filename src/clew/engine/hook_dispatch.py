"""Hook dispatch: plugins receive committed facts in order, off the turn's path."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, cast

import structlog

from clew.agent.turn_context import get_turn_context, hook_session
from clew.core.route import Route
from clew.errors import StoreError
from clew.store.transactions import hook_marks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.agent.turn_context import TurnIds
    from clew.core.ids import SessionId
    from clew.core.inbox import InboxItem
    from clew.hooks.manager import PluginManager
    from clew.store.contract import Store

log = structlog.get_logger(__name__)

FINALIZE_HOOK = "on_session_finalize"
RESET_HOOK = "on_session_reset"


class HookDispatcher:
    """The hook queue of one process; a fact with a subject is marked in the store once sent."""

    def __init__(self, store: Store, plugins: PluginManager) -> None:
        self._store, self.plugins = store, plugins
        self._queue: asyncio.Queue[tuple[str, Mapping[str, object], str | None, TurnIds | None]] = (
            asyncio.Queue()
        )

    def emit_fact(
        self, hook: str, facts: Mapping[str, object], *, subject: str | None = None
    ) -> None:
        """Queue a fact; with a ``subject`` each plugin receives it once, also over restarts."""
        if self.plugins.implements_hook(hook):
            self._queue.put_nowait((hook, facts, subject, get_turn_context()))

    def emit_session_end(self, item: InboxItem) -> None:
        """Queue the finalisation of a session that ended, and then its successor."""
        said = json.loads(item.note or "{}")
        platform = said.get("platform") or get_platform(item.route)
        if said.get("session") is not None:
            over = {"session_id": said["session"], "platform": platform}
            self._queue.put_nowait((FINALIZE_HOOK, over, item.id, None))
        if said.get("next") is not None:
            opened = {"session_id": said["next"], "platform": platform}
            self._queue.put_nowait((RESET_HOOK, opened, item.id, None))
        # The last one: without it, plugins that lack a mark receive all of it again after a crash.
        self._queue.put_nowait((hook_marks.ALL, {}, item.id, None))

    def emit_session_stop(self, session: SessionId, platform: str) -> None:
        """Queue the finalisation of a session whose turn is released by a stopping process."""
        self.emit_fact(FINALIZE_HOOK, {"session_id": session, "platform": platform})

    async def emit_missed_ends(self) -> None:
        """Queue the session ends that a dead process did not send."""
        for item in await self._store.read(hook_marks.list_unnotified_ends):
            self.emit_session_end(item)

    async def run(self) -> None:
        """Send the queued facts, without end."""
        while True:
            hook, facts, subject, turn = await self._queue.get()
            session = cast("SessionId | None", facts.get("session_id"))
            try:
                with hook_session(session, turn):
                    await self._send_fact(hook, facts, subject)
            finally:
                self._queue.task_done()

    async def drain_queue(self, seconds: float) -> None:
        """Wait until the queue is empty, for at most ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                await self._queue.join()
        except TimeoutError:
            log.warning("facts_left", count=self._queue.qsize())

    async def _send_fact(self, hook: str, facts: Mapping[str, object], subject: str | None) -> None:
        if subject is None:
            await self.plugins.notify_plugins(hook, facts)
            return
        try:
            known = await self._store.read(hook_marks.list_notified_plugins, hook, subject)
            if hook == hook_marks.ALL:
                await self._store.write(
                    hook_marks.add_mark, hook_marks.ALL, hook_marks.ALL, subject
                )
                return
            new = (plugin for plugin in self.plugins.plugin_names if plugin not in known)
            # Concurrently: a plugin that hangs does not delay the others.
            await asyncio.gather(*(self._send_once(each, hook, facts, subject) for each in new))
        except StoreError as error:
            log.warning("fact_not_marked", hook=hook, subject=subject, error=str(error))

    async def _send_once(
        self, plugin: str, hook: str, facts: Mapping[str, object], subject: str
    ) -> None:
        await self.plugins.notify_plugins(hook, facts, plugin=plugin)
        await self._store.write(hook_marks.add_mark, plugin, hook, subject)


def get_platform(route: str | None) -> str:
    """Return the platform of a route."""
    return "local" if route is None else Route.parse(route).platform
