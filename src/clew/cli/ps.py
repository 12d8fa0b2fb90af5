"""``clew ps``: commands that the agent has started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from clew.cli.common import (
    CliContext,
    FullHelpGroup,
    format_examples,
    json_option,
    limit_option,
    pass_cli_context,
    print_json,
)
from clew.cli.feature_records import print_fields, print_table, run_with_store
from clew.cli.output import get_outputs
from clew.core.ids import IdGenerator
from clew.core.scope import LOCAL
from clew.features.shell import front, processes
from clew.runtime import make_feature_context

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from clew.features.shell.processes import ShellProcess
    from clew.plugin import FeatureContext

T = TypeVar("T")

_FEATURE: Final = "shell"


def _run(program: CliContext, job: Callable[[FeatureContext], Awaitable[T]]) -> T:
    return run_with_store(
        program,
        _FEATURE,
        lambda settings, store: job(make_feature_context(settings, store, IdGenerator(lambda: 0))),
    )


async def _find(context: FeatureContext, name: str) -> ShellProcess:
    return await context.store.read(front.find_process, name, viewer=LOCAL)


@click.group(
    cls=FullHelpGroup,
    epilog=format_examples("clew ps list", "clew ps output prc_0123", "clew ps stop prc_0123"),
)
def ps() -> None:
    """List the commands that the agent has started, read their output, and stop them."""


@ps.command("list", epilog=format_examples("clew ps list", "clew ps list --json"))
@limit_option(50)
@json_option
@pass_cli_context
def list_processes(program: CliContext, *, limit: int, as_json: bool) -> None:
    """List the commands: those that run, then the newest that ended."""

    async def read(context: FeatureContext) -> list[ShellProcess]:
        return await context.store.read(processes.list_processes, viewer=LOCAL, limit=limit)

    found = _run(program, read)
    if as_json:
        print_json({"items": [front.describe_process(one) for one in found]})
        return
    rows = [
        (one.id, one.state.value, front.describe_state(one), " ".join(one.command.split())[:60])
        for one in found
    ]
    print_table(("ID", "STATE", "END", "COMMAND"), rows, none="no commands yet")


_PROCESS_ARGUMENT = click.argument("process", metavar="PROCESS")


@ps.command(epilog=format_examples("clew ps show prc_0123"))
@_PROCESS_ARGUMENT
@json_option
@pass_cli_context
def show(program: CliContext, *, process: str, as_json: bool) -> None:
    """Show a command, by its id or the first characters of it."""
    found = front.describe_process(_run(program, lambda context: _find(context, process)))
    _print_fields(found, as_json=as_json)


def _print_fields(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    print_fields(
        (name, value) for name, value in found.items() if value is not None and name != "tail"
    )


@ps.command(
    epilog=format_examples("clew ps output prc_0123", "clew ps output prc_0123 --bytes 500")
)
@_PROCESS_ARGUMENT
@click.option(
    "--start", type=click.IntRange(0), metavar="N", help="From this byte on; else its end."
)
@click.option(
    "--bytes",
    "length",
    type=click.IntRange(1, front.MOST_BYTES),
    default=8000,
    show_default=True,
    metavar="N",
    help="How much of it.",
)
@json_option
@pass_cli_context
def output(
    program: CliContext, *, process: str, start: int | None, length: int, as_json: bool
) -> None:
    """Print the end of the output of a command, or another part of it."""

    async def read(context: FeatureContext) -> dict[str, Any]:
        found = await _find(context, process)
        return front.read_part(context, found, start=start, length=length)

    part = _run(program, read)
    if as_json:
        print_json(part)
        return
    out, _ = get_outputs()
    out.write(part["text"])


@ps.command(epilog=format_examples("clew ps stop prc_0123"))
@_PROCESS_ARGUMENT
@json_option
@pass_cli_context
def stop(program: CliContext, *, process: str, as_json: bool) -> None:
    """Have a command end: it is asked to, and killed 5 seconds later."""

    async def ask(context: FeatureContext) -> ShellProcess:
        found = await _find(context, process)
        return await front.stop_process(context, found, by="a person (clew ps stop)")

    _print_fields(front.describe_process(_run(program, ask)), as_json=as_json)
