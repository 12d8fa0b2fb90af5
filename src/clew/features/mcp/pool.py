"""The servers of a process: one connection each, and what is known of their tools."""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from clew.background import cancel_and_wait
from clew.features.mcp.connection import ServerConnection, ServerDown, ServerState
from clew.features.mcp.definitions import list_tools
from clew.features.mcp.settings import pick_server
from clew.features.mcp.shown_tools import make_bound_tools

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping

    from clew.core.tool_declaration import BoundTool
    from clew.features.mcp.definitions import McpTool
    from clew.features.mcp.login import PendingLogin
    from clew.features.mcp.settings import McpServer
    from clew.plugin import FeatureContext

#: Seconds that a search waits for servers of which nothing is known yet.
_FIRST_LOOK: Final = 5.0
#: Seconds that a step waits for the lists of servers that are shown, and after which it does so
#: again for one that did not answer.
_SHORT_LOOK, _LOOK_AGAIN_AFTER = 1.0, 30.0


class McpPool:
    """The connections to the servers of the settings; opened when they are needed."""

    def __init__(self, servers: Mapping[str, McpServer], context: FeatureContext) -> None:
        self.servers = {
            name: ServerConnection(name, server, context) for name, server in servers.items()
        }
        self._context = context
        #: Logins that wait for a person, by server.
        self.logins: dict[str, PendingLogin] = {}
        #: By server, on the clock of ``time.monotonic``: when its list was last waited for in vain.
        self._missed: dict[str, float] = {}
        self._loading = asyncio.Lock()
        self._is_loaded = False

    async def load(self) -> None:
        """Read what was known of the tools when servers were up last."""
        async with self._loading:
            if self._is_loaded:
                return
            for tool in await self._context.store.read(list_tools, [*self.servers]):
                self.servers[tool.server].tools.setdefault(tool.name, tool)
            self._is_loaded = True

    async def list_shown(self) -> list[BoundTool]:
        """Return the tools for lists of sessions; a server that does not answer delays nothing."""
        await self.load()
        shown = [one for one in self.servers.values() if one.server.show]
        now = time.monotonic()
        due = [
            one
            for one in shown
            if one.is_unread() and now - self._missed.get(one.name, -math.inf) > _LOOK_AGAIN_AFTER
        ]
        if due:
            await _wait_for_all(map(_look_at, due), _SHORT_LOOK)
            self._missed.update({one.name: now for one in due if one.is_unread()})
        return [tool for one in shown for tool in make_bound_tools(one)]

    def start(self) -> None:
        """Connect to all servers in the background."""
        for one in self.servers.values():
            one.start()

    async def close(self) -> None:
        """End all servers."""
        for login in self.logins.values():
            await login.close()
        for one in self.servers.values():
            await one.close()

    def get(self, name: str) -> ServerConnection:
        """
        Return a server.

        :raises UsageError: naming the servers, if there is no such one
        """
        return pick_server(self.servers, name)

    def find_tool(self, server: str, tool: str) -> McpTool | None:
        """Return a tool as it was listed last."""
        found = self.servers.get(server)
        return None if found is None else found.tools.get(tool)

    async def look(self) -> None:
        """Read the lists of servers that are up; wait a little for those that are new."""
        await self.load()
        self.start()
        await _wait_for_all(map(_look_at, self.servers.values()), _FIRST_LOOK)


async def _look_at(one: ServerConnection) -> None:
    if not one.tools and one.status.state in (ServerState.OFF, ServerState.CONNECTING):
        with suppress(ServerDown):
            await one.need(_FIRST_LOOK)
    await one.refresh()


async def _wait_for_all(works: Iterable[Coroutine[None, None, None]], seconds: float) -> None:
    tasks = [asyncio.create_task(one) for one in works]
    if tasks:
        await asyncio.wait(tasks, timeout=seconds)
        await cancel_and_wait(*tasks)
