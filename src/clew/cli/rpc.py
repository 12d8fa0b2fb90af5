"""``clew rpc``: JSON-RPC over standard input and output."""

from __future__ import annotations

import click

from clew.cli.common import Globals, example, pass_globals, undisturbed


@click.command(epilog=example("clew rpc", 'echo \'{"jsonrpc": "2.0", "id": 1, …}\' | clew rpc'))
@pass_globals
def rpc(program: Globals) -> None:
    """
    Speak JSON-RPC over standard input and output, a message in each line.

    Attaches to the server that runs in this CLEW_HOME; where none does, it works by itself. Ends
    when its input ends. docs/reference/rpc.md lists the methods.
    """
    settings = program.settings()
    with undisturbed():
        from clew.cli.piping import run  # noqa: PLC0415  (help needs no engine)

    run(settings)
