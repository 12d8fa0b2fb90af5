"""``clew cron``: jobs that run by themselves."""

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
from clew.features.schedule import operations
from clew.features.schedule.editing import ScheduleEdit
from clew.features.schedule.settings import ScheduleSettings, find_zone_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.config import Settings
    from clew.store.contract import Tx

T = TypeVar("T")

_FEATURE: Final = "schedule"


def _run(program: CliContext, job: Callable[[Tx, Settings], T]) -> T:
    return run_in_store(program, _FEATURE, job)


def _find_zone(settings: Settings) -> str:
    return find_zone_name(load_section(settings, _FEATURE, ScheduleSettings), settings)


@click.group(
    cls=FullHelpGroup,
    epilog=format_examples(
        'clew cron add --cron "0 8 * * *" "Tell me what is new"', "clew cron list"
    ),
)
def cron() -> None:
    """List, add, run and remove jobs, and show what became of each time."""


@cron.command("list", epilog=format_examples("clew cron list", "clew cron list --done --json"))
@click.option("--done", is_flag=True, help="Also those that have ended.")
@json_option
@pass_cli_context
def list_jobs(program: CliContext, *, done: bool, as_json: bool) -> None:
    """List the jobs, with the time at which each fires next."""
    found = _run(program, lambda t, _: operations.describe_all(t, LOCAL, done=done))
    if as_json:
        print_json({"items": found})
        return
    rows = [
        (one["id"], one["title"], _format_schedule(one), one["state"], _format_next(one))
        for one in found
    ]
    print_table(("ID", "TITLE", "SCHEDULE", "STATE", "NEXT"), rows, none="no jobs yet")


def _format_schedule(job: dict[str, Any]) -> str:
    [(rule, expression)] = job["schedule"].items()
    return f"{rule} {expression} {job['zone']}"


def _format_next(job: dict[str, Any]) -> str:
    return job["next"][0] if job["next"] else "-"


@cron.command(
    epilog=format_examples(
        'clew cron add --cron "0 8 * * *" --zone Europe/Berlin "Tell me what is new"',
        'clew cron add --at 2026-12-01T08:00 --conversation main "Call the dentist"',
        'clew cron add --every 15m --command "df -h /" "Tell me if the disk is nearly full"',
        'clew cron add --every 1h --watch https://example.org/news "Tell me what is new"',
    )
)
@click.argument("task")
@click.option("--at", metavar="TIME", help="Once: 2026-12-01T08:00.")
@click.option("--every", metavar="PERIOD", help="Again and again: 15m, 2h, 1d.")
@click.option("--cron", "expression", metavar="FIELDS", help='Five fields: "0 8 * * 1-5".')
@click.option("--zone", metavar="NAME", help="The time zone, such as Europe/Berlin.")
@click.option("--title", metavar="TEXT", help="A name; else the first words of the task.")
@click.option(
    "--kind",
    type=click.Choice(("turn", "message", "command")),
    help="Ask the model (turn), or deliver TASK as it is (message).",
)
@click.option("--command", metavar="LINE", help="Run it; ask the model if its output is new.")
@click.option(
    "--watch", metavar="TARGET", help="A URL, or a file of the workspace; ask if it has changed."
)
@click.option(
    "--where",
    type=click.Choice(("fresh", "own", "here")),
    help="A new conversation each time, one of its own, or that of --conversation.",
)
@click.option("--conversation", metavar="NAME", help="The conversation of --where here.")
@click.option("--route", metavar="KEY", help="The chat that gets the reports.")
@click.option(
    "--catch-up",
    type=click.Choice(("latest", "none", "all")),
    help="What to do about times at which nothing was running.",
)
@click.option(
    "--quiet", type=click.Choice(("hold", "skip", "ignore")), help="What to do in quiet hours."
)
@click.option("--quiet-if", metavar="TEXT", help="An answer that is not reported.")
@click.option("--until", metavar="TIME", help="The end of the job.")
@click.option("--runs", type=click.IntRange(1), metavar="N", help="How often it runs.")
@json_option
@pass_cli_context
def add(program: CliContext, *, as_json: bool, expression: str | None, **given: Any) -> None:
    """Add a job that does TASK at a time, every so often, or by a cron expression."""
    given["kind"] = given["kind"] or ("command" if given["command"] else "turn")
    if given["where"] is None and given["conversation"] is not None:
        given["where"] = "here"
    wanted = operations.AddJobParams(cron=expression, **given)
    job_id = IdGenerator(now_millis).new_operation_id()

    def store(t: Tx, settings: Settings) -> dict[str, Any]:
        name = f"job_{job_id.removeprefix('op_')}"
        return operations.add_job(t, name, wanted, zone=_find_zone(settings), viewer=LOCAL)

    _print_job(_run(program, store), as_json=as_json)


_SHOWN_IF_SET: Final = ("command", "watch", "route", "conversation")


def _print_job(job: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(job)
        return
    fields = [
        ("id", job["id"]),
        ("title", job["title"]),
        ("schedule", _format_schedule(job)),
        ("state", job["state"] + (f", {job['reason']}" if job["reason"] else "")),
        ("task", job["task"]),
        *((name, str(job[name])) for name in _SHOWN_IF_SET if job[name]),
        *(("next", moment) for moment in job["next"]),
        *([("waits", f"for an answer: clew chat -c {job['waits']}")] if job["waits"] else []),
    ]
    print_fields(fields)


_JOB_ARGUMENT = click.argument("job", metavar="JOB")


@cron.command(epilog=format_examples("clew cron show job_0123"))
@_JOB_ARGUMENT
@json_option
@pass_cli_context
def show(program: CliContext, *, job: str, as_json: bool) -> None:
    """Show a job, by its id or title, and its next three times."""
    found = _run(program, lambda t, _: operations.describe_named(t, job, viewer=LOCAL))
    _print_job(found, as_json=as_json)


def _change(program: CliContext, action: str, job: str, *, as_json: bool) -> None:
    changed = _run(program, lambda t, _: operations.change_named(t, action, job, viewer=LOCAL))
    if action == "run" and not as_json:
        click.echo("it runs as soon as a gateway (clew serve) sees it", err=True)
    _print_job(changed, as_json=as_json)


@cron.command(epilog=format_examples("clew cron run job_0123"))
@_JOB_ARGUMENT
@json_option
@pass_cli_context
def run(program: CliContext, *, job: str, as_json: bool) -> None:
    """Run a job as soon as possible, beside its schedule."""
    _change(program, "run", job, as_json=as_json)


@cron.command(
    epilog=format_examples(
        "clew cron edit job_0123 --zone America/New_York",
        'clew cron edit job_0123 --cron "30 8 * * 1-5"',
    )
)
@_JOB_ARGUMENT
@click.option("--zone", metavar="NAME", help="By whose clocks it fires from now on.")
@click.option("--at", metavar="TIME", help="Once: 2026-12-01T08:00.")
@click.option("--every", metavar="PERIOD", help="Again and again, counted from now: 15m, 2h, 1d.")
@click.option("--cron", metavar="FIELDS", help='Five fields: "0 8 * * 1-5".')
@json_option
@pass_cli_context
def edit(program: CliContext, *, job: str, as_json: bool, **given: str | None) -> None:
    """Change the times of a job, its time zone, or both; its log stays."""
    changed = ScheduleEdit(**given)
    edited = _run(program, lambda t, _: operations.edit_named(t, job, changed, viewer=LOCAL))
    _print_job(edited, as_json=as_json)


@cron.command(epilog=format_examples("clew cron pause job_0123"))
@_JOB_ARGUMENT
@json_option
@pass_cli_context
def pause(program: CliContext, *, job: str, as_json: bool) -> None:
    """Stop a job until it is resumed."""
    _change(program, "pause", job, as_json=as_json)


@cron.command(epilog=format_examples("clew cron resume job_0123"))
@_JOB_ARGUMENT
@json_option
@pass_cli_context
def resume(program: CliContext, *, job: str, as_json: bool) -> None:
    """Let a paused job fire again, from now on."""
    _change(program, "resume", job, as_json=as_json)


@cron.command(epilog=format_examples("clew cron remove job_0123"))
@_JOB_ARGUMENT
@json_option
@pass_cli_context
def remove(program: CliContext, *, job: str, as_json: bool) -> None:
    """Remove a job and its log; a run that has begun goes on."""
    _change(program, "remove", job, as_json=as_json)


@cron.command(epilog=format_examples("clew cron log job_0123", "clew cron log job_0123 --json"))
@_JOB_ARGUMENT
@limit_option(50)
@json_option
@pass_cli_context
def log(program: CliContext, *, job: str, limit: int, as_json: bool) -> None:
    """Show what became of each time of a job, the newest first."""
    found = _run(program, lambda t, _: operations.describe_fires(t, job, limit=limit, viewer=LOCAL))
    if as_json:
        print_json({"items": found})
        return
    rows = [
        (
            one["slot"],
            one["state"],
            one["report"] or "-",
            one["conversation"] or "-",
            one["reason"] or "-",
        )
        for one in found
    ]
    heads = ("SLOT", "STATE", "REPORT", "CONVERSATION", "REASON")
    print_table(heads, rows, none="it has not fired yet")
