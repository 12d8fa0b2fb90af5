"""MCP: tools of other programs, which speak the Model Context Protocol."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from clew.features.mcp.settings import SECTION, McpServer
from clew.features.mcp.tool import McpTools, make_find_facts
from clew.plugin import Command

if TYPE_CHECKING:
    from clew.plugin import CommandCall, FeatureContext, Registry

#: Seconds after the start before servers are connected to that nobody has needed yet.
_START_AFTER: Final = 2.0


def register(registry: Registry) -> McpTools:
    """Register the feature; return what its tools share."""
    tools = McpTools(registry.add_named_settings(SECTION, McpServer))
    registry.add_settings_check("mcp", tools.find_problems)
    registry.add_migrations(f"{__name__}.migrations")
    registry.add_tool(
        tools.mcp_find,
        effect="pure",
        facts=make_find_facts,
        untrusted=True,
        when=tools.has_servers,
    )
    registry.add_tool(
        tools.mcp_call,
        effects=tools.find_effect,
        facts=tools.make_call_facts,
        untrusted=True,
        when=tools.has_servers,
    )
    registry.add_tool(
        tools.mcp_read,
        effect="pure",
        facts=tools.make_read_facts,
        untrusted=True,
        when=tools.has_servers,
    )
    registry.add_bound_tools("mcp servers", tools.find_bound_tools)
    registry.add_service("mcp servers", partial(run_servers, tools))
    registry.add_doctor_check("mcp servers", tools.check_servers)
    registry.add_health("mcp", tools.read_health)
    registry.add_operation("mcp.list", partial(_make_operation, tools))
    registry.add_command(
        Command(
            name="mcp",
            help="list the MCP servers with their state, or the tools of one; log in at one; take "
            "their tools as they are now into this conversation",
            run=partial(run_mcp_command, tools),
            arguments="[NAME|login NAME|reload]",
            operator=True,
        )
    )
    registry.add_command(
        Command(
            name="mcp prompt",
            help="send a prompt of an MCP server as your message, also as /NAME:PROMPT",
            run=partial(run_prompt_command, tools),
            arguments="NAME PROMPT [ARGUMENT=VALUE …]",
            operator=True,
            takes_prefixed=True,
        )
    )
    return tools


async def run_servers(tools: McpTools, context: FeatureContext) -> None:
    """Connect to all servers a little after the start, and end them with the gateway."""
    import asyncio  # noqa: PLC0415  (every command loads this module)

    if not tools.servers:
        await asyncio.Event().wait()  # a service that ends is started again
    pool = tools.get_pool(context)
    try:
        await pool.load()
        await asyncio.sleep(_START_AFTER)
        pool.start()
        await asyncio.Event().wait()
    finally:
        await pool.close()


async def run_mcp_command(tools: McpTools, call: CommandCall, argument: str) -> str:
    """List the servers, or the tools of one; or log in."""
    pool = tools.get_pool(call.services)
    words = argument.split()
    if words[:1] == ["login"]:
        from clew.features.mcp import chat_login  # noqa: PLC0415  (as below)

        return await chat_login.log_in(pool, words[1:])
    if words == ["reload"]:
        from clew.features.mcp import reloading  # noqa: PLC0415  (as below)

        return await reloading.reload_tools(pool, call)
    from clew.features.mcp import front  # noqa: PLC0415  (declared by every command, needed by few)

    return await front.describe_servers(pool, argument.strip())


async def run_prompt_command(tools: McpTools, call: CommandCall, argument: str) -> str:
    """Send a prompt of a server."""
    from clew.features.mcp import prompts  # noqa: PLC0415  (as above)

    return await prompts.send_prompt(tools.get_pool(call.services), call, argument)


def _make_operation(tools: McpTools) -> object:
    from clew.features.mcp import operations  # noqa: PLC0415  (only servers need them)

    return operations.make_list_operation(tools)
