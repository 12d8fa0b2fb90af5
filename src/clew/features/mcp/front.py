"""What people are told of servers and their tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.effect import Effect
from clew.features.mcp.prompts import describe_prompts

if TYPE_CHECKING:
    from clew.features.mcp.connection import ServerConnection
    from clew.features.mcp.definitions import McpTool
    from clew.features.mcp.pool import McpPool
    from clew.features.mcp.settings import McpServer

_EFFECTS = {
    Effect.PURE: "only reads",
    Effect.IDEMPOTENT: "can be repeated",
    Effect.ONCE: "is never repeated",
    Effect.ASK: "asks before it is repeated",
}


async def describe_servers(pool: McpPool, name: str) -> str:
    """Return the servers with their state; of one also the tools."""
    await pool.load()
    if name:
        one = pool.get(name)
        return "\n".join([*_describe_whole(one), *await describe_prompts(one)])
    lines = [_describe_line(one) for one in pool.servers.values()]
    return (
        "\n".join(lines)
        or "There are no MCP servers; a table `[mcp.NAME]` in config.toml adds one."
    )


def _describe_line(one: ServerConnection) -> str:
    left_out = f", {one.left_out} cannot be used" if one.left_out else ""
    tools = f"{len(one.tools)} tools{left_out}"
    return f"{one.name} ({one.server.place}): {one.status.describe()}, {tools}"


def _describe_whole(one: ServerConnection) -> list[str]:
    return [_describe_line(one), *(describe_tool(one.server, tool) for tool in one.tools.values())]


def describe_tool(server: McpServer, tool: McpTool) -> str:
    """Return a tool in a line: what it does, and what its calls are taken for."""
    said = " ".join(tool.description.split())[:120]
    return f"- {tool.name} ({describe_effect(server, tool)}): {said}"


def describe_effect(server: McpServer, tool: McpTool) -> str:
    """Return what the calls of a tool are taken for."""
    effect = tool.find_effect(server.trust)
    asks = "" if server.trust == "full" or effect is Effect.PURE else ", asks"
    return f"{_EFFECTS[effect]}{asks}"
