"""``clew agents``: the tasks that agents were given by others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from clew.cli.common import (
    CliContext,
    FullHelpGroup,
    format_examples,
    json_option,
    pass_cli_context,
    print_json,
)
from clew.cli.feature_records import load_section, print_fields, print_table, run_in_store
from clew.cli.output import get_outputs
from clew.clock import now_millis
from clew.core.ids import IdGenerator
from clew.core.scope import LOCAL
from clew.features.delegation import operations
from clew.features.delegation.settings import DelegationSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.config import Settings
    from clew.store.contract import Tx

T = TypeVar("T")

_FEATURE: Final = "delegation"


def _run(program: CliContext, job: Callable[[Tx, Settings], T]) -> T:
    return run_in_store(program, _FEATURE, job)


@click.group(
    cls=FullHelpGroup,
    epilog=format_examples("clew agents list", "clew agents read cnv_0123"),
)
def agents() -> None:
    """List the tasks that agents work on for others, and read, tell and stop them."""


@agents.command(
    "list", epilog=format_examples("clew agents list", "clew agents list main --done --json")
)
@click.argument("conversation", required=False)
@click.option("--done", is_flag=True, help="Also those that have ended.")
@json_option
@pass_cli_context
def list_tasks(program: CliContext, *, conversation: str | None, done: bool, as_json: bool) -> None:
    """List the tasks of a CONVERSATION and of those below it, or all."""
    found = _run(
        program, lambda t, _: operations.describe_all(t, conversation, viewer=LOCAL, done=done)
    )
    if as_json:
        print_json(found)
        return
    rows = [
        (
            one["id"],
            one["agent"] or "",
            "  " * (one["depth"] - 1) + one["title"],
            _format_state(one),
            _tokens(one),
        )
        for one in found["items"]
    ]
    print_table(("ID", "KIND", "TASK", "STATE", "TOKENS"), rows, none="no tasks")
    if rows and found["usage"] is not None:
        _, notes = get_outputs()
        notes.print_dim(f"with the conversation itself: {_tokens(found)} tokens")


def _format_state(task: dict[str, Any]) -> str:
    return "waits for an answer" if task["waits"] else task["state"]


def _tokens(task: dict[str, Any]) -> str:
    return f"{task['usage']['input_tokens'] + task['usage']['output_tokens']:,}"


def _print_task(task: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(task)
        return
    fields = [
        ("id", task["id"]),
        *([("kind", task["agent"])] if task["agent"] else []),
        ("task", task["title"]),
        ("state", _format_state(task) + (f", {task['reason']}" if task["reason"] else "")),
        ("asked for in", task["parent"]),
        ("steps", f"{task['steps']} of {task['max_steps']}"),
        ("tokens", f"{_tokens(task)} (at most {task['max_tokens']:,})"),
    ]
    print_fields(fields)


_TASK_ARGUMENT = click.argument("task", metavar="TASK")


@agents.command(epilog=format_examples("clew agents show cnv_0123"))
@_TASK_ARGUMENT
@json_option
@pass_cli_context
def show(program: CliContext, *, task: str, as_json: bool) -> None:
    """Show a task, by its id, the first characters of it, or its title."""
    found = _run(program, lambda t, _: operations.describe_named(t, task, viewer=LOCAL))
    _print_task(found, as_json=as_json)


@agents.command(epilog=format_examples("clew agents read cnv_0123"))
@_TASK_ARGUMENT
@click.option("--start", type=click.IntRange(0), default=0, help="Character from which to read.")
@json_option
@pass_cli_context
def read(program: CliContext, *, task: str, start: int, as_json: bool) -> None:
    """Print the answer of a task, or what it has said so far."""
    found = _run(
        program, lambda t, _: operations.describe_answer(t, task, viewer=LOCAL, start=start)
    )
    if as_json:
        print_json(found)
        return
    out, notes = get_outputs()
    if not found["text"]:
        notes.print_dim("it has said nothing yet")
        return
    out.write(found["text"] + "\n")
    if (end := start + len(found["text"])) < found["size"]:
        notes.print_dim(f"more: --start {end}")


@agents.command(epilog=format_examples('clew agents tell cnv_0123 "Leave out the annexes"'))
@_TASK_ARGUMENT
@click.argument("text")
@json_option
@pass_cli_context
def tell(program: CliContext, *, task: str, text: str, as_json: bool) -> None:
    """Tell a task something; one that has ended works on."""
    item = IdGenerator(now_millis).new_inbox_id()

    def store(t: Tx, settings: Settings) -> dict[str, Any]:
        own = load_section(settings, _FEATURE, DelegationSettings)
        return operations.tell_named(t, task, text, viewer=LOCAL, settings=own, item=item)

    told = _run(program, store)
    if not as_json:
        click.echo("a gateway (clew serve) has to run for it to work on", err=True)
    _print_task(told, as_json=as_json)


@agents.command(epilog=format_examples("clew agents stop cnv_0123"))
@_TASK_ARGUMENT
@json_option
@pass_cli_context
def stop(program: CliContext, *, task: str, as_json: bool) -> None:
    """Stop a task and all below it; what it has so far becomes its answer."""
    stopped = _run(program, lambda t, _: operations.stop_named(t, task, viewer=LOCAL))
    _print_task(stopped, as_json=as_json)
