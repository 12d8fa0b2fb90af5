"""What makes the list of tools of a conversation anew, and what that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.features.mcp.shown_tools import MAX_SHOWN, make_bound_tools

if TYPE_CHECKING:
    from clew.features.mcp.connection import ServerConnection
    from clew.features.mcp.pool import McpPool
    from clew.plugin import CommandCall


async def reload_tools(pool: McpPool, call: CommandCall) -> str:
    """Have a conversation's next request list the tools as they are now."""
    await pool.look()
    shown = [one for one in pool.servers.values() if one.server.show]
    if not shown:
        return (
            "No server has `show = true`: mcp_find and mcp_call have all tools as they are now, "
            "without a reload."
        )
    listed = "Listed from now on: " + "; ".join(map(_describe, shown)) + "."
    if call.conversation_id is None:
        return f"{listed} There is no conversation here yet: it begins with them."
    tokens = await call.services.reload(call.conversation_id)
    cost = "the whole context" if not tokens else f"the context, about {tokens:,} tokens,"
    return f"{listed} With the next message the model's provider reads {cost} without its cache."


def _describe(one: ServerConnection) -> str:
    count = sum(tool.listed for tool in make_bound_tools(one))
    if len(one.tools) > MAX_SHOWN:
        return f"{one.name} none, its {len(one.tools)} tools are more than {MAX_SHOWN}"
    rest = len(one.tools) - count
    return f"{one.name} {count}" + (f", {rest} only by mcp_find" if rest else "")
