"""Texts about jobs, for people and for the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.clock import from_millis
from clew.features.schedule.planning import GRACE
from clew.features.schedule.zones import find_zone

if TYPE_CHECKING:
    from datetime import datetime

    from clew.features.schedule.jobs import JobFire, ScheduledJob
    from clew.features.schedule.planning import ReportState

#: Characters of an error that people are told.
_MAX_ERROR: Final = 500
_REASONS: Final = {
    "down": "nothing was running",
    "later": "a later slot was due as well",
    "running": "the run before had not ended",
    "waiting": "the run before waits for an answer",
    "quiet": "quiet hours",
    "budget": "the tokens of the day are spent (agent.unattended_tokens)",
    "interrupted": "the gateway ended while its command ran",
    "deleted": "its conversation was deleted",
    "stopped": "somebody stopped it",
    "unchanged": "the output was the same as before",
    "first": "it was looked at for the first time: changes are told from now on",
    "no_access": "whoever created it has no access any more",
    "paused": "paused by hand",
}
_REPORTS: Final = {
    "waiting": " (its report has not been delivered yet)",
    "failed": " (its report could not be delivered)",
}


def describe_reason(reason: str | None) -> str | None:
    """Return the words for a stored reason; the text of an error stays as it is."""
    return None if reason is None else _REASONS.get(reason, reason)


def format_moment(millis: int, zone: str) -> str:
    """Return a time by the clocks of a zone: ``2026-12-01 08:00 +0100``."""
    return f"{from_millis(millis).astimezone(find_zone(zone)):%a %Y-%m-%d %H:%M %z}"


def format_moments(slots: list[datetime], zone: str) -> list[str]:
    """Return times by the clocks of a zone."""
    return [f"{slot.astimezone(find_zone(zone)):%a %Y-%m-%d %H:%M %z}" for slot in slots]


def format_title(job: ScheduledJob, text: str) -> str:
    """Return a text with the job that it is about, unless that is the text itself."""
    return text if text.startswith(job.title) else f"{job.title}: {text}"


def format_task(job: ScheduledJob, slot: int, now: int, *, output: str | None = None) -> str:
    """Return the input of a run, for the model."""
    late = from_millis(now) - from_millis(slot)
    said = f"It is due at {format_moment(slot, job.zone)} ({job.zone})"
    if late > GRACE:
        said += f", and runs late, at {format_moment(now, job.zone)}"
    lines = [f"The job {job.title!r} runs. {said}.", "", job.task]
    if output is not None:
        lines += ["", f"{_describe_source(job)}:", output]
    if job.quiet_if:
        lines += ["", f"If there is nothing to report, answer exactly {job.quiet_if}"]
    return "\n".join(lines)


def _describe_source(job: ScheduledJob) -> str:
    return "Its command has printed" if job.watch is None else f"{job.watch} has changed"


def format_failure(job: ScheduledJob, error: str, *, failures: int) -> str:
    """Return what people are told of a failed run."""
    told = describe_reason(error) or "it failed"
    told = told if len(told) <= _MAX_ERROR else f"{told[:_MAX_ERROR]}…"
    often = "" if failures == 1 else f", {failures} times in a row"
    return f"The job {job.title!r} failed{often}: {told}\n/jobs {job.id} shows it."


def format_recovery(job: ScheduledJob) -> str:
    """Return what people are told when a job works again."""
    return f"The job {job.title!r} works again, after {job.failures} failures."


def format_pause(job: ScheduledJob, reason: str) -> str:
    """Return what people are told of a job that is paused for a reason."""
    return f"The job {job.title!r} is paused: {describe_reason(reason)}.\n/jobs {job.id} shows it."


def format_fire(fire: JobFire, zone: str, report: ReportState | None) -> str:
    """Return one line about a fire; a report that has arrived goes without saying."""
    why = describe_reason(fire.reason)
    line = f"{format_moment(fire.slot, zone)}  {fire.state.value}" + (f": {why}" if why else "")
    return line if report is None else f"{line}{_REPORTS.get(report.value, '')}"
