"""``clew goal``: goals of conversations, towards which the agent goes on by itself."""

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
from clew.cli.feature_records import load_section, print_fields, print_table, run_in_store
from clew.clock import now_millis
from clew.core.ids import IdGenerator
from clew.core.scope import LOCAL
from clew.features.goals import operations
from clew.features.goals.settings import GoalsSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.store.contract import Tx

T = TypeVar("T")

_FEATURE: Final = "goals"


def _run(program: CliContext, job: Callable[[Tx, GoalsSettings], T]) -> T:
    return run_in_store(
        program,
        _FEATURE,
        lambda t, settings: job(t, load_section(settings, _FEATURE, GoalsSettings)),
    )


@click.group(
    cls=FullHelpGroup,
    epilog=format_examples('clew goal set main "The report is complete"', "clew goal list"),
)
def goal() -> None:
    """Set, show and change goals; a gateway (clew serve) or clew chat goes on with them."""


@goal.command("list", epilog=format_examples("clew goal list", "clew goal list --ended --json"))
@click.option("--ended", is_flag=True, help="Also those that have ended.")
@json_option
@pass_cli_context
def list_goals(program: CliContext, *, ended: bool, as_json: bool) -> None:
    """List the goals, with what each has used."""
    found = _run(program, lambda t, _: operations.describe_all(t, LOCAL, ended=ended))
    if as_json:
        print_json({"items": found})
        return
    rows = [
        (one["id"], one["conversation"], _format_state(one), _format_use(one), one["text"])
        for one in found
    ]
    print_table(("ID", "CONVERSATION", "STATE", "USED", "GOAL"), rows, none="no goals yet")


def _format_state(one: dict[str, Any]) -> str:
    return one["state"] + (f", {one['reason']}" if one["reason"] else "")


def _format_use(one: dict[str, Any]) -> str:
    return f"{one['rounds']}/{one['max_rounds']} rounds, {one['tokens']}/{one['budget']} tokens"


@goal.command(
    "set",
    epilog=format_examples(
        'clew goal set main "All tests of the project pass"',
        'clew goal set main --rounds 5 --budget 100000 "The report is complete"',
    ),
)
@click.argument("conversation")
@click.argument("text")
@click.option("--rounds", type=click.IntRange(1, 1000), metavar="N", help="The most rounds.")
@click.option("--budget", type=click.IntRange(1), metavar="TOKENS", help="The most tokens.")
@json_option
@pass_cli_context
def set_goal(program: CliContext, *, as_json: bool, **given: Any) -> None:
    """Set the goal of a CONVERSATION (id, NAME or route), in the place of the one before."""
    wanted = operations.SetGoalParams(**given)
    operation = IdGenerator(now_millis).new_operation_id()

    def store(t: Tx, settings: GoalsSettings) -> dict[str, Any]:
        limits = operations.make_limits(settings, wanted)
        return operations.set_goal(t, operation, wanted, limits, viewer=LOCAL)

    _print_goal(_run(program, store), as_json=as_json)


def _print_goal(one: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(one)
        return
    print_fields(
        [
            ("id", one["id"]),
            ("conversation", one["conversation"]),
            ("state", _format_state(one)),
            ("used", _format_use(one)),
            ("goal", one["text"]),
        ]
    )


_GOAL_ARGUMENT = click.argument("name", metavar="GOAL")


@goal.command(epilog=format_examples("clew goal show main", "clew goal show gol_0123 --json"))
@_GOAL_ARGUMENT
@json_option
@pass_cli_context
def show(program: CliContext, *, name: str, as_json: bool) -> None:
    """Show a GOAL, by its id or by its conversation."""
    found = _run(program, lambda t, _: operations.describe_named(t, name, viewer=LOCAL))
    _print_goal(found, as_json=as_json)


def _change(program: CliContext, action: str, name: str, *, as_json: bool) -> None:
    def change(t: Tx, settings: GoalsSettings) -> dict[str, Any]:
        limits = operations.make_limits(settings)
        return operations.change_named(t, action, name, limits, viewer=LOCAL)

    _print_goal(_run(program, change), as_json=as_json)


@goal.command(epilog=format_examples("clew goal pause main"))
@_GOAL_ARGUMENT
@json_option
@pass_cli_context
def pause(program: CliContext, *, name: str, as_json: bool) -> None:
    """Pause a GOAL: its round ends, and no other begins."""
    _change(program, "pause", name, as_json=as_json)


@goal.command(epilog=format_examples("clew goal resume main"))
@_GOAL_ARGUMENT
@json_option
@pass_cli_context
def resume(program: CliContext, *, name: str, as_json: bool) -> None:
    """Resume a paused GOAL; what was used up is allowed again."""
    _change(program, "resume", name, as_json=as_json)


@goal.command(epilog=format_examples("clew goal done main"))
@_GOAL_ARGUMENT
@json_option
@pass_cli_context
def done(program: CliContext, *, name: str, as_json: bool) -> None:
    """End a GOAL as reached."""
    _change(program, "done", name, as_json=as_json)


@goal.command(epilog=format_examples("clew goal stop main"))
@_GOAL_ARGUMENT
@json_option
@pass_cli_context
def stop(program: CliContext, *, name: str, as_json: bool) -> None:
    """Give a GOAL up."""
    _change(program, "stop", name, as_json=as_json)


@goal.command(epilog=format_examples("clew goal rounds main", "clew goal rounds main --json"))
@_GOAL_ARGUMENT
@limit_option(50)
@json_option
@pass_cli_context
def rounds(program: CliContext, *, name: str, limit: int, as_json: bool) -> None:
    """Show the rounds towards a GOAL, the newest first."""
    found = _run(
        program, lambda t, _: operations.describe_rounds(t, name, limit=limit, viewer=LOCAL)
    )
    if as_json:
        print_json({"items": found})
        return
    rows = [
        (str(one["n"]), one["state"], str(one["tokens"]), one["remark"] or one["reason"] or "-")
        for one in found
    ]
    print_table(("ROUND", "STATE", "TOKENS", "REMARK"), rows, none="no round has begun yet")
