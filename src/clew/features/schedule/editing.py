"""Changes of a job's zone: its next times follow the new one, and its log stays."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from clew.clock import from_millis, to_millis
from clew.errors import UsageError
from clew.features.schedule.jobs import JobState, get_job, lock_job, set_next_slot
from clew.features.schedule.parsing import ScheduleText, parse_schedule
from clew.features.schedule.zones import find_zone, to_local

if TYPE_CHECKING:
    from clew.features.schedule.jobs import ScheduledJob
    from clew.store.contract import Tx


def move_to_zone(t: Tx, job: ScheduledJob, zone: str) -> ScheduledJob:
    """
    Have a job fire by the clocks of another zone, from now on.

    A time of day stays as it is written: 08:00 is then 08:00 there. A period is counted on.

    :raises UsageError: if there is no such zone, or a time is due that was not looked at yet
    """
    find_zone(zone)
    locked = lock_job(t, job.id)
    if locked is None or locked.state is JobState.DONE or locked.next_slot is None:
        raise UsageError(f"{job.title} has ended: its zone means nothing any more")
    if locked.state is JobState.ON and locked.next_slot <= t.now:
        # By the old zone it is a slot: it gets its row before the new one counts.
        raise UsageError(
            f"{job.title} is due since {from_millis(locked.next_slot):%Y-%m-%dT%H:%MZ}, and no "
            "gateway has run it yet: change its zone after that"
        )
    moved = _write_again(locked, zone, now=from_millis(t.now))
    t.execute(
        "UPDATE schedule_job SET zone = $2, expression = $3 WHERE id = $1",
        locked.id, moved.zone, moved.expression,
    )  # fmt: skip
    if locked.state is JobState.ON:
        _set_next(t, locked, moved)
    return get_job(t, locked.id)


def _write_again(job: ScheduledJob, zone: str, *, now: datetime) -> ScheduleText:
    """Return the schedule with the same reading of the clocks in another zone."""
    if job.rule != "at":
        return ScheduleText(kind=job.rule, expression=job.expression, zone=zone)
    local = to_local(datetime.fromisoformat(job.expression), find_zone(job.zone))
    return parse_schedule(at=local.isoformat(), every=None, cron=None, zone=zone, now=now)


def _set_next(t: Tx, job: ScheduledJob, moved: ScheduleText) -> None:
    # A clock that was put back must not find a slot that has a row.
    last = t.fetch_value("SELECT max(slot) FROM schedule_fire WHERE job = $1", job.id)
    after = from_millis(max(t.now, last or 0))
    slot = moved.load(anchor=job.anchor).next_after(after)
    is_over = slot is None or (job.until_at is not None and to_millis(slot) > job.until_at)
    set_next_slot(t, job, None if slot is None or is_over else to_millis(slot))
