"""``clew rpc``: JSON-RPC over standard input and output."""

from __future__ import annotations

import click

from clew.cli.common import CliContext, fast_import, format_examples, pass_cli_context


@click.command(
    epilog=format_examples("clew rpc", 'echo \'{"jsonrpc": "2.0", "id": 1, …}\' | clew rpc')
)
@pass_cli_context
def rpc(program: CliContext) -> None:
    """
    Speak JSON-RPC over standard input and output, a message in each line.

    Attaches to the server that runs in this CLEW_HOME, and waits for one that is starting; where
    none runs, it works by itself. Ends when its input ends. docs/reference/rpc.md lists the
    methods.
    """
    settings = program.load_settings()
    with fast_import():
        from clew.cli.rpc_stdio import run_rpc_stdio  # noqa: PLC0415  (help needs no engine)

    run_rpc_stdio(settings)
