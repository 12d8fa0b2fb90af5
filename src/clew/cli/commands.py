"""The global options and the table of commands."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from clew.cli.common import CliContext, format_examples
from clew.cli.lazy import LazyCommand, LazyGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

#: In the order in which ``clew --help`` lists them.
COMMANDS: Final = {
    "chat": LazyCommand("clew.cli.chat", "chat", "Talk to the agent."),
    "setup": LazyCommand("clew.cli.setup", "setup", "Choose a model, try it, and chat."),
    "serve": LazyCommand("clew.cli.serve", "serve", "Run the gateway: channels and API."),
    "service": LazyCommand(
        "clew.cli.service.commands", "service", "Run the gateway around the clock."
    ),
    "dashboard": LazyCommand("clew.cli.dashboard", "dashboard", "Open the dashboard in a browser."),
    "mcp": LazyCommand("clew.cli.mcp", "mcp", "Speak MCP over pipes, for programs with tools."),
    "rpc": LazyCommand("clew.cli.rpc", "rpc", "Speak JSON-RPC over pipes, for programs."),
    "acp": LazyCommand("clew.cli.acp", "acp", "Be the agent of an editor."),
    "sessions": LazyCommand(
        "clew.cli.sessions", "sessions", "List, search and change conversations."
    ),
    "import": LazyCommand("clew.cli.move_in", "import_system", "Move in from another system."),
    "export": LazyCommand("clew.cli.export", "export", "Write conversations for other programs."),
    "fsck": LazyCommand(
        "clew.cli.fsck", "fsck", "Check every conversation, and repair what can be repaired."
    ),
    "pair": LazyCommand("clew.cli.pair", "pair", "Grant and revoke access to channels."),
    "deliveries": LazyCommand(
        "clew.cli.deliveries", "deliveries", "List, retry and drop undelivered messages."
    ),
    "usage": LazyCommand("clew.cli.usage", "usage", "Sum up tokens and cost."),
    "agents": LazyCommand(
        "clew.cli.agents", "agents", "List, read, tell and stop the tasks of agents."
    ),
    "cron": LazyCommand(
        "clew.cli.cron", "cron", "List, add and remove jobs that run by themselves."
    ),
    "ps": LazyCommand("clew.cli.ps", "ps", "List and stop the commands of the agent."),
    "goal": LazyCommand(
        "clew.cli.goal", "goal", "Set goals towards which the agent goes on by itself."
    ),
    "memory": LazyCommand(
        "clew.cli.memory", "memory", "Show and correct what is remembered of people and chats."
    ),
    "skills": LazyCommand("clew.cli.skills", "skills", "Add, check and trust skills."),
    "config": LazyCommand("clew.cli.config", "config", "Show and check the settings."),
    "doctor": LazyCommand("clew.cli.doctor", "doctor", "Find problems, and say how to fix them."),
    "backup": LazyCommand("clew.cli.backup", "backup", "Copy the whole store to a file."),
    "restore": LazyCommand("clew.cli.backup", "restore", "Restore the store from a backup."),
    "migrate-store": LazyCommand(
        "clew.cli.backup", "migrate_store", "Copy the store into another database."
    ),
    "tools": LazyCommand("clew.cli.tools", "tools", "List the tools of the agent."),
    "plugins": LazyCommand("clew.cli.plugins", "plugins", "Check the plugins."),
    "hermes": LazyCommand("clew.cli.hermes", "hermes", "Run commands of Hermes plugins."),
    "completion": LazyCommand(
        "clew.cli.completion", "completion", "Complete commands in your shell."
    ),
}


def _may_have_plugins(program: CliContext) -> bool:
    """Return false if no plugin is named anywhere; quick, and without the settings."""
    name = "plugins"
    if any(name in flag for flag in program.flags) or f"CLEW_{name.upper()}__ENABLED" in os.environ:
        return True
    home = program.home or os.environ.get("CLEW_HOME")
    if home is None:
        import platformdirs  # noqa: PLC0415  (not needed where the home is named)

        home = platformdirs.user_data_path("clew", appauthor=False)
    with suppress(OSError):
        return name.encode() in Path(home).expanduser().joinpath("config.toml").read_bytes()
    return False


class RootGroup(LazyGroup):
    """The commands of Clew, then those of features."""

    def find_more_entries(self, ctx: click.Context) -> Mapping[str, LazyCommand]:
        program = CliContext(home=ctx.params.get("home"), flags=ctx.params.get("flags") or {})
        if not _may_have_plugins(program):
            return {}
        from clew.plugin.declarations import CliEntry  # noqa: PLC0415  (help of Clew itself needs no settings)

        return {
            entry.name: LazyCommand(entry.module, entry.attribute, entry.help)
            for entry in program.load_features().values(CliEntry)
            if entry.name not in self.entries
        }


def _print_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if not asked or ctx.resilient_parsing:
        return
    from clew.cli.version import format_version  # noqa: PLC0415  (commands need it not)

    click.echo(format_version())
    ctx.exit()


def _parse_flags(_ctx: click.Context, _: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Return the pairs of ``--set section.key=value``; the last value of a key wins."""
    pairs = [one.partition("=") for one in given]
    for name, equals, _value in pairs:
        if not equals or "." not in name:
            raise click.BadParameter(f"{name!r} is not of the form SECTION.KEY=VALUE")
    return {name.strip(): value for name, _, value in pairs}


@click.group(
    cls=RootGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=format_examples("clew chat Hello", "clew --set model.name=offline config show"),
)
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="PATH",
    is_eager=True,
    help="The folder that holds settings and conversations, instead of CLEW_HOME.",
)
@click.option(
    "--set",
    "flags",
    multiple=True,
    callback=_parse_flags,
    metavar="SECTION.KEY=VALUE",
    is_eager=True,
    help="Set a setting for this run; may be repeated.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version, its commit, and the store schemas that it knows.",
)
@click.pass_context
def root(ctx: click.Context, home: Path | None, flags: dict[str, str]) -> None:
    """
    An agent gateway that cannot lose, double or scramble a conversation.

    Without a command, on a terminal: talk on the whole screen.
    """  # noqa: D401
    ctx.obj = CliContext(home=home, flags=flags)
    if ctx.invoked_subcommand is not None:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        click.echo(ctx.get_help())
        return
    from clew.cli.open_tui import open_tui  # noqa: PLC0415  (help needs no screen)

    ctx.exit(open_tui(ctx.obj))


root.entries = COMMANDS
