"""``clew acp``: the Agent Client Protocol over standard input and output, for editors."""

from __future__ import annotations

import click

from clew.cli.common import CliContext, fast_import, format_examples, pass_cli_context


@click.command(epilog=format_examples("clew acp", "clew acp --agent coder"))
@click.option(
    "--agent",
    metavar="NAME",
    help="The agent of new sessions: a table [agents.NAME] of the settings.  [default: the main "
    "one]",
)
@pass_cli_context
def acp(program: CliContext, agent: str | None) -> None:
    """
    Speak the Agent Client Protocol over standard input and output.

    An editor starts it. Each of its sessions is a conversation, which every other front can
    open. Attaches to the server that runs in this CLEW_HOME; where none runs, it works by itself.
    """
    settings = program.load_settings()
    with fast_import():
        from clew.cli.acp_stdio import run_acp_stdio  # noqa: PLC0415  (help needs no engine)

    run_acp_stdio(settings, agent=agent)
