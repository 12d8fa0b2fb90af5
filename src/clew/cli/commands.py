"""The program's options and the table of its commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click

from clew.cli.common import Globals, example
from clew.cli.lazy import Entry, LazyGroup
from clew.distribution import VERSION

#: In the order of the list that ``clew --help`` prints.
COMMANDS: Final = {
    "chat": Entry("clew.cli.chat", "chat", "Talk to the agent."),
    "setup": Entry("clew.cli.setup", "setup", "Choose a model, try it, and chat."),
    "serve": Entry("clew.cli.serve", "serve", "Run the gateway: channels and API."),
    "rpc": Entry("clew.cli.rpc", "rpc", "Speak JSON-RPC over pipes, for programs."),
    "sessions": Entry("clew.cli.sessions", "sessions", "List, search and change conversations."),
    "fsck": Entry("clew.cli.fsck", "fsck", "Check every conversation, and repair what can be."),
    "pair": Entry("clew.cli.pair", "pair", "Let people talk on channels, and shut them out."),
    "deliveries": Entry("clew.cli.deliveries", "deliveries", "Look after undelivered messages."),
    "config": Entry("clew.cli.config", "config", "Show and check the settings."),
    "doctor": Entry("clew.cli.doctor", "doctor", "Find out what is wrong, and what to do."),
    "backup": Entry("clew.cli.backup", "backup", "Copy the whole store to a file."),
    "restore": Entry("clew.cli.backup", "restore", "Bring a backup back."),
    "migrate-store": Entry(
        "clew.cli.backup", "migrate_store", "Copy the store into another database."
    ),
    "completion": Entry("clew.cli.completion", "completion", "Complete commands in your shell."),
}


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if not asked or ctx.resilient_parsing:
        return
    click.echo(f"clew {VERSION}")
    ctx.exit()


def _flags(_ctx: click.Context, _: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """The pairs of ``--set section.key=value``; the last one for a key wins."""
    pairs = [one.partition("=") for one in given]
    for name, equals, _value in pairs:
        if not equals or "." not in name:
            raise click.BadParameter(f"{name!r} is not of the form SECTION.KEY=VALUE")
    return {name.strip(): value for name, _, value in pairs}


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=example("clew chat Hello", "clew --set model.name=offline config show"),
)
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="PATH",
    help="The folder that holds settings and conversations, instead of CLEW_HOME.",
)
@click.option(
    "--set",
    "flags",
    multiple=True,
    callback=_flags,
    metavar="SECTION.KEY=VALUE",
    help="Set a setting for this run; may be repeated.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Print the version.",
)
@click.pass_context
def root(ctx: click.Context, home: Path | None, flags: dict[str, str]) -> None:
    """
    An agent gateway that cannot lose, double or scramble a conversation.

    Without a command, on a terminal: talk on the whole screen.
    """
    ctx.obj = Globals(home=home, flags=flags)
    if ctx.invoked_subcommand is not None:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        click.echo(ctx.get_help())
        return
    from clew.cli.opening import open_terminal  # noqa: PLC0415  (help needs no screen)

    ctx.exit(open_terminal(ctx.obj))


root.entries = COMMANDS
