"""The tools ``mcp_find``, ``mcp_call`` and ``mcp_read``, as the model sees them."""

# ruff: noqa: PLC0415

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.core.effect import Effect
from clew.core.health import PartHealth
from clew.core.tool_facts import ToolFacts
from clew.features.mcp.settings import find_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clew.config.settings import Settings
    from clew.core.doctor_finding import DoctorFinding
    from clew.core.tool_declaration import BoundTool
    from clew.features.mcp.pool import McpPool
    from clew.features.mcp.settings import McpServer
    from clew.plugin import FeatureContext, TurnContext
    from clew.plugin.settings_tables import NamedTables


class McpTools:
    """The tools, and the pool of servers that they share with everything else of a process."""

    def __init__(self, section: NamedTables[McpServer]) -> None:
        self._section = section
        self._pool: McpPool | None = None
        self._context: FeatureContext | None = None
        #: As they were checked last: a check of ``clew doctor`` is given none.
        self._settings: Settings | None = None

    def find_problems(self, settings: Settings) -> Iterator[str]:
        """Yield a sentence for each thing in the tables that cannot be honoured."""
        self._settings = settings
        return find_problems(settings)

    async def check_servers(self) -> Sequence[DoctorFinding]:
        """Try each server, and return what came of it."""
        if not self.servers or self._settings is None:
            return ()
        from clew.features.mcp import trying

        return await trying.check_servers(self.servers, self._settings)

    @property
    def servers(self) -> Mapping[str, McpServer]:
        return self._section.get()

    def get_pool(self, context: FeatureContext) -> McpPool:
        """Return the pool of the running application."""
        from clew.features.mcp.pool import McpPool

        if self._pool is None or self._context is not context:
            self._pool, self._context = McpPool(self.servers, context), context
        return self._pool

    def find_pool(self) -> McpPool | None:
        """Return the pool, if it was needed."""
        return self._pool

    def read_health(self) -> Mapping[str, PartHealth]:
        """Return the state of each server of which something is known."""
        pool = self._pool
        found = {} if pool is None else pool.servers
        return {
            name: PartHealth(state=one.status.state.value, why=one.status.why)
            for name, one in found.items()
        }

    def has_servers(self, _: TurnContext) -> bool:
        """Return whether there is a server."""
        return bool(self.servers)

    async def find_bound_tools(self, context: TurnContext) -> Sequence[BoundTool]:
        """Return the tools that lists of sessions have."""
        if not any(one.show for one in self.servers.values()):
            return ()
        return await self.get_pool(context.services).list_shown()

    async def mcp_find(self, query: str = "") -> str:
        """
        Find tools and resources of MCP servers; without a query, list the servers.

        Args:
            query: What to do, or a server's name.
        """
        from clew.features.mcp import tool_calls

        return await tool_calls.find(self._get_turn_pool(), query)

    async def mcp_call(self, server: str, tool: str, args: dict[str, Any] | None = None) -> str:
        """
        Call a tool that mcp_find shows.

        Args:
            server: Its server.
            tool: Its name.
            args: Its arguments.
        """
        from clew.features.mcp import tool_calls

        return await tool_calls.call(self._get_turn_pool(), server, tool, args or {})

    async def mcp_read(self, server: str, uri: str) -> str:
        """Read a resource that mcp_find shows."""
        from clew.features.mcp import tool_calls

        return await tool_calls.read(self._get_turn_pool(), server, uri)

    def _get_turn_pool(self) -> McpPool:
        from clew.plugin import get_turn_context

        context = get_turn_context()
        assert context is not None
        return self.get_pool(context.services)

    async def find_effect(self, arguments: Mapping[str, Any]) -> Effect:
        """Return the effect of a call: as the server says, as far as that counts."""
        name, server = self._find_server(arguments)
        pool = self._get_turn_pool()
        await pool.load()
        found = pool.find_tool(name, str(arguments.get("tool", "")))
        if server is None:
            return Effect.PURE  # the answer says that there is no such server
        if found is None:
            return Effect.ONCE
        return found.find_effect(server.trust)

    async def make_call_facts(self, arguments: Mapping[str, Any]) -> ToolFacts:
        """Return what a call reaches: by where its server runs, and what it is trusted with."""
        name, server = self._find_server(arguments)
        tool = str(arguments.get("tool", ""))
        hosts = (f"{name}/{tool}",)
        if server is None:
            return ToolFacts(hosts=hosts, internal=True)
        if server.trust == "none":
            return make_call_facts(hosts, server)
        only_reads = await self.find_effect(arguments) is Effect.PURE
        return make_call_facts(hosts, server, only_reads=only_reads)

    def make_read_facts(self, arguments: Mapping[str, Any]) -> ToolFacts:
        """Return the server that is asked for a resource."""
        name, server = self._find_server(arguments)
        # An address can carry data to a server elsewhere.
        outward = server is not None and server.url is not None and server.trust == "none"
        return ToolFacts(hosts=(name,), outward=outward, untrusted_result=True)

    def _find_server(self, arguments: Mapping[str, Any]) -> tuple[str, McpServer | None]:
        name = str(arguments.get("server", ""))
        return name, self.servers.get(name)


def make_find_facts(_: Mapping[str, Any]) -> ToolFacts:
    """Return that a search changes nothing."""
    return ToolFacts(internal=True, untrusted_result=True)


def make_call_facts(
    hosts: tuple[str, ...], server: McpServer, *, only_reads: bool = False
) -> ToolFacts:
    """Return the facts of a call; a command in the sandbox tells nobody outside anything."""
    is_confined = server.url is None and server.level != "host"
    return ToolFacts(
        hosts=hosts,
        outward=not (is_confined or only_reads or server.trust == "full"),
        trusted=server.trust == "full",
        untrusted_result=True,
    )
