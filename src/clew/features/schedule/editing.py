"""Changes of a job's schedule: its next times follow the new one, and its log stays."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from clew.clock import from_millis, to_millis
from clew.errors import UsageError
from clew.features.schedule.jobs import JobState, get_job, lock_job, set_next_slot
from clew.features.schedule.parsing import ScheduleText, parse_schedule
from clew.features.schedule.zones import find_zone, to_local
from clew.record import Record

if TYPE_CHECKING:
    from clew.features.schedule.jobs import ScheduledJob
    from clew.store.contract import Tx


class ScheduleEdit(Record):
    """Change of a schedule: of the zone, the times (one of the others), or both."""

    zone: str | None = None
    at: str | None = None
    every: str | None = None
    cron: str | None = None

    @property
    def has_times(self) -> bool:
        return any((self.at, self.every, self.cron))


def edit_schedule(t: Tx, job: ScheduledJob, edit: ScheduleEdit) -> ScheduledJob:
    """
    Have a job fire at other times, or by the clocks of another zone, from now on.

    With another zone alone, a time of day stays as it is written: 08:00 is then 08:00 there. A
    period is counted on; a new one is counted from now.

    :raises UsageError: if nothing changes, the schedule cannot be read, or a time is due that was
        not looked at yet
    """
    if edit.zone is None and not edit.has_times:
        raise UsageError("nothing changes: give a zone, or one of at, every and cron")
    if edit.zone is not None:
        find_zone(edit.zone)
    locked = lock_job(t, job.id)
    if locked is None or locked.state is JobState.DONE or locked.next_slot is None:
        raise UsageError(f"{job.title} has ended: add another job")
    if locked.state is JobState.ON and locked.next_slot <= t.now:
        # By the old schedule it is a slot: it gets its row before the new one counts.
        raise UsageError(
            f"{job.title} is due since {from_millis(locked.next_slot):%Y-%m-%dT%H:%MZ}, and no "
            "gateway has run it yet: change it after that"
        )
    text = _write_again(locked, edit, now=from_millis(t.now))
    anchor = t.now if edit.has_times else locked.anchor
    t.execute(
        "UPDATE schedule_job SET rule = $2, expression = $3, zone = $4, anchor = $5 WHERE id = $1",
        locked.id, text.kind, text.expression, text.zone, anchor,
    )  # fmt: skip
    if locked.state is JobState.ON:
        _set_next(t, locked, text, anchor)
    return get_job(t, locked.id)


def _write_again(job: ScheduledJob, edit: ScheduleEdit, *, now: datetime) -> ScheduleText:
    """Return the new schedule; another zone alone keeps the reading of the clocks."""
    zone = edit.zone or job.zone
    if edit.has_times:
        return parse_schedule(at=edit.at, every=edit.every, cron=edit.cron, zone=zone, now=now)
    if job.rule != "at":
        return ScheduleText(kind=job.rule, expression=job.expression, zone=zone)
    local = to_local(datetime.fromisoformat(job.expression), find_zone(job.zone))
    return parse_schedule(at=local.isoformat(), every=None, cron=None, zone=zone, now=now)


def _set_next(t: Tx, job: ScheduledJob, text: ScheduleText, anchor: int) -> None:
    # A clock that was put back must not find a slot that has a row.
    last = t.fetch_value("SELECT max(slot) FROM schedule_fire WHERE job = $1", job.id)
    after = from_millis(max(t.now, last or 0))
    slot = text.load(anchor=anchor).next_after(after)
    is_over = slot is None or (job.until_at is not None and to_millis(slot) > job.until_at)
    set_next_slot(t, job, None if slot is None or is_over else to_millis(slot))
