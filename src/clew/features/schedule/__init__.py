"""Schedule: jobs that run by themselves, at a time, every so often, or by a cron expression."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from clew.features.schedule.settings import ScheduleSettings
from clew.features.schedule.tool import make_facts, make_tool
from clew.plugin import Command, sql_check

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.plugin import CommandCall, FeatureContext, Registry

#: Operations of HTTP and JSON-RPC.
OPERATIONS: Final = (
    "job.list", "job.get", "job.add", "job.edit", "job.run", "job.pause", "job.resume",
    "job.remove", "job.log",
)  # fmt: skip

#: Invariants of jobs and fires.
CHECKS = (
    sql_check(
        "schedule-fires",
        "Each fire belongs to a job.",
        """
        SELECT NULL, NULL, f.job, 0, 'a slot of a job that is not there' FROM schedule_fire f
        WHERE NOT EXISTS (SELECT 1 FROM schedule_job j WHERE j.id = f.job)
        """,
        decide="restore the job from a backup, or delete the row",
    ),
    sql_check(
        "schedule-next",
        "A job that is on has a next slot, later than each that it has fired.",
        """
        SELECT j.conversation, NULL, j.id, 0, 'its next slot has come already, or there is none'
        FROM schedule_job j WHERE j.state = 'on' AND (
            j.next_slot IS NULL OR j.due_at < j.next_slot OR EXISTS (
                SELECT 1 FROM schedule_fire f WHERE f.job = j.id AND f.slot >= j.next_slot
            )
        )
        """,
        decide="pause the job and resume it, which finds its next slot anew",
    ),
)


def register(registry: Registry) -> None:
    """Register the feature."""
    settings = registry.add_settings(ScheduleSettings)
    registry.add_migrations(
        f"{__name__}.migrations",
        of_conversation={"schedule_job": "conversation", "schedule_fire": "conversation"},
        of_route={"schedule_job": "route"},
        of_scope={"schedule_job": "scope"},
        checks=CHECKS,
    )

    async def run_scheduler(context: FeatureContext) -> None:
        """Fire the jobs that are due."""
        from clew.features.schedule.service import Scheduler  # noqa: PLC0415  (heavy)

        await Scheduler(context, settings.get(), registry.find_watch_source).run()

    async def prune(context: FeatureContext) -> None:
        """Remove what is older than the settings keep."""
        from clew.features.schedule.pruning import prune_jobs  # noqa: PLC0415  (needed by gateways only)

        await prune_jobs(context, settings.get())

    registry.add_service("schedule", run_scheduler)
    registry.add_periodic(prune, every=timedelta(hours=1), name="old fires of jobs")
    registry.add_tool(
        make_tool(settings.get),
        effect="idempotent",
        facts=partial(make_facts, registry.find_watch_source),
    )
    registry.add_command(
        Command(
            name="jobs",
            help="list what runs by itself, show a job, or pause, resume, run or remove it",
            run=run_jobs_command,
            arguments="[id|pause id|resume id|run id|remove id|zone, at, every or cron id value]",
        )
    )
    for name in OPERATIONS:
        registry.add_operation(name, partial(_make_operation, name, settings.get))


async def run_jobs_command(call: CommandCall, argument: str) -> str:
    """List the jobs of the chat, show one, or change one."""
    from clew.features.schedule import chat_command  # noqa: PLC0415  (declared by every command, needed by few)

    return await chat_command.run_jobs_command(call, argument)


def _make_operation(name: str, get_settings: Callable[[], ScheduleSettings]) -> object:
    from clew.features.schedule import operations  # noqa: PLC0415  (only servers need them)

    return operations.find_operation(name, get_settings)
