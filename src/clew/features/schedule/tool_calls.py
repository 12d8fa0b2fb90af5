"""Calls of the tool ``schedule``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import NotFound, UsageError
from clew.features.schedule import front, jobs
from clew.features.schedule.editing import ScheduleEdit, edit_schedule
from clew.features.schedule.jobs import JobPlace
from clew.features.schedule.making import JobRequest, find_kind, resume_job
from clew.features.schedule.settings import find_zone_name
from clew.plugin import get_turn_context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.features.schedule.settings import ScheduleSettings
    from clew.plugin import TurnContext
    from clew.store.contract import Tx


async def run(action: str, given: Mapping[str, str], settings: ScheduleSettings) -> str:
    """
    Carry out a call and return the text for the model.

    :raises UsageError: saying what is wrong and what would do
    """
    context = get_turn_context()
    if context is None:
        raise UsageError("jobs are made in turns only")
    store = context.services.store
    if action == "add":
        request = _make_request(given, find_zone_name(settings, context.services.settings))
        made = await store.write(front.create_from_turn, context, request)
        return f"Scheduled. {front.format_job(made)}"
    if action == "list":
        found = await store.read(jobs.list_jobs, viewer=context.scope)
        return "\n".join(map(front.format_job, found)) or "There are no jobs."
    return await store.write(_change, action, given, context)


def _make_request(given: Mapping[str, str], zone: str) -> JobRequest:
    return JobRequest(
        task=given["task"],
        at=given["at"] or None,
        every=given["every"] or None,
        cron=given["cron"] or None,
        zone=given["zone"] or zone,
        kind=find_kind(given["kind"], watch=given["watch"]),
        place=JobPlace(given["where"]) if given["where"] else None,
        command=given["command"] or None,
        watch=given["watch"] or None,
        quiet_if=given["quiet_if"] or None,
    )


def _change(t: Tx, action: str, given: Mapping[str, str], context: TurnContext) -> str:
    if not given["job"]:
        raise UsageError(f"{action} needs the id of a job: list shows them")
    job = front.find_changeable_job(t, given["job"], context)
    if action != "edit":
        return change_job(t, job, action)
    edit = ScheduleEdit(**{name: given[name] or None for name in ("zone", "at", "every", "cron")})
    return front.format_job(edit_schedule(t, job, edit))


def change_job(t: Tx, found: jobs.ScheduledJob, action: str) -> str:
    """
    Pause, resume, remove or run a job; return what was done.

    :raises NotFound: if it was removed meanwhile
    """
    # A slot that fires now is recorded before, or not at all.
    job = jobs.lock_job(t, found.id)
    if job is None:
        raise NotFound("job", found.id)
    if action == "remove":
        jobs.delete_job(t, job)
        return f"Removed: {job.title}."
    if action == "pause":
        jobs.pause_job(t, job, reason="paused")
    elif action == "resume":
        resume_job(t, job)
    else:
        jobs.ask_for_run(t, job)
        return f"{job.title} runs as soon as a gateway sees it."
    return front.format_job(jobs.get_job(t, job.id))
