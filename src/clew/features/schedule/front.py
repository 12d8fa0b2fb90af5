"""Use cases of jobs, for people, programs and the model on every front."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clew.core.completion import HOPS_KEY, MAX_HOPS, UNATTENDED_KEY
from clew.errors import UsageError
from clew.features.schedule import jobs
from clew.features.schedule.jobs import JobKind, JobPlace, JobState
from clew.features.schedule.making import JobOwner, JobRequest, create_job, list_next_fires
from clew.features.schedule.reports import find_reports
from clew.features.schedule.runs import get_run_state
from clew.features.schedule.wording import describe_reason, format_fire, format_moments
from clew.features.schedule.zones import find_zone
from clew.store.transactions.grants import is_tainted
from clew.store.transactions.inbox import read_payloads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.scope import Scope
    from clew.features.schedule.jobs import JobFire, ScheduledJob
    from clew.features.schedule.planning import ReportState
    from clew.plugin import TurnContext
    from clew.store.contract import Tx


def create_from_turn(t: Tx, context: TurnContext, request: JobRequest) -> ScheduledJob:
    """
    Store a job that the model of a turn asks for; the same call returns the first one.

    :raises UsageError: if it is wrong, or if a turn that no person began may not make it
    """
    if not context.attended:
        if request.at is None:
            raise UsageError("no person began this turn: only a job with one time, at, can be made")
        if context.hops >= MAX_HOPS:
            raise UsageError(f"{context.hops} turns ran in a row without a person: ask one first")
    _check_rights(context, request)
    key = context.call_key
    assert key is not None
    owner = JobOwner(
        scope=context.scope,
        route=context.route,
        conversation=context.conversation,
        payload=json.dumps(_read_creator(t, context), ensure_ascii=False),
        level=context.sandbox_level,
        untrusted=is_tainted(t, context.conversation),
    )
    return create_job(t, f"job_{key.make_digest()[:12]}", request, owner)


def _has_fewer_rights(context: TurnContext) -> bool:
    return context.profile is not None and context.profile.is_narrow


def _check_rights(context: TurnContext, request: JobRequest) -> None:
    """
    Check that a job does nothing that the agent which makes it may not do.

    :raises UsageError: if others would carry it out, with the rights of every agent
    """
    if not _has_fewer_rights(context) or request.kind is JobKind.MESSAGE:
        return
    if request.kind is not JobKind.TURN or request.place is not JobPlace.HERE:
        raise UsageError(
            "an agent of this kind can only schedule messages, and turns of its own conversation "
            "(where = here)"
        )


def _read_creator(t: Tx, context: TurnContext) -> dict[str, Any]:
    """Return who asked for the turn, whose access its jobs need."""
    told: dict[str, Any] = {}
    for payload in read_payloads(t, context.turn):
        said = json.loads(payload)
        told |= {key: said[key] for key in ("sender", "account") if key in said}
    if not context.attended:
        told |= {UNATTENDED_KEY: True, HOPS_KEY: context.hops}
    return told


def find_job(t: Tx, name: str, *, viewer: Scope) -> ScheduledJob:
    """
    Return the job with an id or a title, or the first characters of its id.

    :raises NotFound: if there is none
    """
    for job in jobs.list_jobs(t, viewer=viewer, done=True):
        if name and (
            job.id == name or job.id.startswith((name, f"job_{name}")) or job.title == name
        ):
            return job
    return jobs.get_job(t, name, viewer=viewer)


def find_changeable_job(t: Tx, name: str, context: TurnContext) -> ScheduledJob:
    """
    Return the job with a name that the model of a turn may change.

    :raises NotFound: if there is none
    :raises UsageError: if an agent with fewer rights did not make it
    """
    job = find_job(t, name, viewer=context.scope)
    # All that such an agent can make belongs to its conversation.
    if _has_fewer_rights(context) and job.conversation != context.conversation:
        raise UsageError(
            f"an agent of this kind can only change jobs of its own conversation, not {job.id}"
        )
    return job


def describe_job(t: Tx, job: ScheduledJob) -> dict[str, Any]:
    """Return a job as programs get it."""
    fires = list_next_fires(job) if job.state is JobState.ON else []
    return {
        "id": job.id,
        "title": job.title,
        "kind": job.kind.value,
        "task": job.task,
        "command": job.command,
        "watch": job.watch,
        "schedule": {job.rule: job.expression},
        "zone": job.zone,
        "where": job.place.value,
        "conversation": job.conversation,
        "scope": job.scope,
        "route": job.route,
        "state": job.state.value,
        "reason": describe_reason(job.reason),
        "catch_up": job.catch_up.value,
        "quiet": job.quiet.value,
        "quiet_if": job.quiet_if,
        "failures": job.failures,
        "next": [slot.astimezone(find_zone(job.zone)).isoformat() for slot in fires],
        "waits": _find_question(t, job),
    }


def _find_question(t: Tx, job: ScheduledJob) -> str | None:
    """Return the conversation in which a run of the job waits for an answer."""
    running = jobs.find_running_fire(t, job.id)
    waits = running is not None and get_run_state(t, running).is_waiting
    return running.conversation if running is not None and waits else None


def describe_fires(t: Tx, job: ScheduledJob, *, limit: int) -> list[dict[str, Any]]:
    """Return the last fires of a job, newest first, as programs get them."""
    fires = jobs.list_fires(t, job.id, limit=limit)
    reports = find_reports(t, job, fires)
    return [_describe_fire(fire, job, reports.get(fire.slot)) for fire in fires]


def _describe_fire(fire: JobFire, job: ScheduledJob, report: ReportState | None) -> dict[str, Any]:
    [slot] = format_slots([fire.slot], job.zone)
    return {
        "slot": slot,
        "state": fire.state.value,
        "reason": describe_reason(fire.reason),
        "report": None if report is None else report.value,
        "conversation": fire.conversation,
        "turn": fire.turn,
    }


def format_slots(slots: Sequence[int], zone: str) -> list[str]:
    """Return slots as ISO times in a zone."""
    from clew.clock import from_millis  # noqa: PLC0415

    return [from_millis(slot).astimezone(find_zone(zone)).isoformat() for slot in slots]


def format_job(job: ScheduledJob) -> str:
    """Return a job in a line, with its next fires."""
    when = f"{job.rule} {job.expression}"
    line = f"{job.id}  {job.title} ({when}, {job.zone})"
    if job.state is not JobState.ON:
        why = describe_reason(job.reason)
        return f"{line}: {job.state.value}" + (f", {why}" if why else "")
    return f"{line}: next {'; '.join(format_moments(list_next_fires(job), job.zone))}"


def format_log(t: Tx, job: ScheduledJob, *, limit: int) -> str:
    """Return the last fires of a job, newest first."""
    fires = jobs.list_fires(t, job.id, limit=limit)
    reports = find_reports(t, job, fires)
    lines = [format_fire(fire, job.zone, reports.get(fire.slot)) for fire in fires]
    return "\n".join(lines) or "It has not fired yet."
