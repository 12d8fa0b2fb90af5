"""``clew mcp``: MCP over standard input and output, and the servers that the agent uses."""

from __future__ import annotations

import click

from clew.cli.common import CliContext, fast_import, format_examples
from clew.cli.lazy import LazyCommand, LazyGroup


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    epilog=format_examples("clew mcp --scope talk", "clew mcp add --from ~/.cursor/mcp.json"),
)
@click.option(
    "--scope",
    type=click.Choice(["read", "talk", "operate"]),
    default="talk",
    show_default=True,
    help="What the client may do: read, also send messages, or also answer approvals.",
)
@click.pass_context
def mcp(ctx: click.Context, scope: str) -> None:
    """
    Speak MCP over standard input and output, as a server with conversations and memory.

    Programs such as Claude Desktop, Claude Code and Cursor start it. Works with the server that
    runs in this CLEW_HOME, and by itself where none runs. Ends when its input ends. The commands
    are about servers that the agent uses.
    """
    if ctx.invoked_subcommand is None:
        _serve(ctx.ensure_object(CliContext), scope)


def _serve(program: CliContext, scope: str) -> None:
    settings = program.load_settings()
    with fast_import():
        from clew.cli.mcp_stdio import run_mcp_stdio  # noqa: PLC0415  (help needs no engine)

    run_mcp_stdio(settings, scope)


_MODULE = "clew.cli.mcp_servers"
mcp.entries = {
    "add": LazyCommand(_MODULE, "add", "Add MCP servers, and show what they offer."),
    "list": LazyCommand(_MODULE, "list_servers", "List the MCP servers and their state."),
    "test": LazyCommand(_MODULE, "test_server", "Connect to an MCP server, and list its tools."),
    "login": LazyCommand("clew.cli.mcp_login", "login", "Log in at an MCP server, with a browser."),
    "remove": LazyCommand(_MODULE, "remove_server", "Remove an MCP server."),
}
