"""
What becomes of each slot: it starts a run, or it is recorded why it does not.

Slots follow from the last slot, not from the time at which somebody looks, so that none is
forgotten and none comes twice.
"""

from __future__ import annotations

import enum
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

from clew.features.schedule.zones import find_zone, to_instant, to_local
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.features.schedule.schedules import Schedule

#: A slot that is processed later than this is one that was missed.
GRACE: Final = timedelta(minutes=2)
#: From this period on, a run that was missed is made up for.
LONG_PERIOD: Final = timedelta(hours=6)
#: Runs that ``all`` makes up for.
MAX_CAUGHT_UP: Final = 24


class CatchUp(enum.Enum):
    """Rule for slots that were missed because nothing was running."""

    LATEST = "latest"  #: one run for all of them
    NONE = "none"  #: no run
    ALL = "all"  #: a run for each of the last ones


class FireState(enum.Enum):
    """Outcome of a slot."""

    STARTED = "started"  #: its run was accepted and has not ended
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"  #: on purpose; the reason is stored
    MISSED = "missed"  #: nothing was running at the time


class ReportState(enum.Enum):
    """Progress of a report on its way to the chat."""

    WAITING = "waiting"  #: not delivered yet, or nobody knows whether it was
    DELIVERED = "delivered"
    FAILED = "failed"  #: given up: ``clew deliveries`` shows why


class SkipReason(enum.Enum):
    """Reason why a slot started no run."""

    DOWN = "down"  #: nothing was running
    LATER = "later"  #: a later slot was due as well
    RUNNING = "running"  #: the run before had not ended
    WAITING = "waiting"  #: the run before waits for an answer
    QUIET = "quiet"  #: in the quiet hours
    BUDGET = "budget"  #: the tokens of the day are used up


class PlannedSlot(Record, kw_only=False):
    """A due slot; without a reason it starts a run."""

    slot: datetime
    reason: SkipReason | None = None


class DueSlots(Record):
    """The due slots of a job, oldest first."""

    slots: Sequence[PlannedSlot]
    #: The first slot that is not among them; ``None`` if there is none.
    next_slot: datetime | None


def default_catch_up(schedule: Schedule, now: datetime) -> CatchUp:
    """Return the rule of a job that names none: make up for what is rare."""
    first = schedule.next_after(now)
    second = None if first is None else schedule.next_after(first)
    if first is None or second is None or second - first >= LONG_PERIOD:
        return CatchUp.LATEST
    return CatchUp.NONE


def plan_due_slots(
    schedule: Schedule,
    first: datetime,
    *,
    now: datetime,
    catch_up: CatchUp,
    limit: int,
    held_until: Callable[[datetime], datetime | None] | None = None,
) -> DueSlots:
    """
    Plan the slots from ``first`` until now, ``limit`` of them at most.

    The last of them start runs, or the last of all if more are due than that.
    ``held_until`` returns until when a slot is held back on purpose: it is not late before.
    """
    due: list[datetime] = []
    slot: datetime | None = first
    while slot is not None and slot <= now and len(due) < limit:
        due.append(slot)
        slot = schedule.next_after(slot)
    rest = _count_due(schedule, slot, now, MAX_CAUGHT_UP)
    held = [None if held_until is None else held_until(one) for one in due]
    late = [now - (end or one) > GRACE for one, end in zip(due, held, strict=True)]
    kept = _count_runs(late, rest, catch_up=catch_up)
    is_last = len(due) - 1 if not rest else None
    planned = [
        PlannedSlot(one, None if n >= len(due) - kept else _explain(held[n], late[n], n == is_last))
        for n, one in enumerate(due)
    ]
    return DueSlots(slots=planned, next_slot=slot)


def _count_due(schedule: Schedule, slot: datetime | None, now: datetime, limit: int) -> int:
    found = 0
    while slot is not None and slot <= now and found < limit:
        found += 1
        slot = schedule.next_after(slot)
    return found


def _count_runs(late: Sequence[bool], rest: int, *, catch_up: CatchUp) -> int:
    """Return how many of the last due slots start a run; ``rest`` more are due after them."""
    if not late:
        return 0
    if catch_up is CatchUp.ALL:
        return max(0, min(len(late), MAX_CAUGHT_UP - rest))
    return 0 if rest or (catch_up is CatchUp.NONE and late[-1]) else 1


def _explain(held: datetime | None, is_late: bool, is_last: bool) -> SkipReason:
    """Return why a due slot starts no run."""
    if held is not None:
        return SkipReason.QUIET
    return SkipReason.DOWN if is_last or is_late else SkipReason.LATER


class QuietHours(Record, kw_only=False):
    """A part of each day, by the clocks of a zone; it may go over midnight."""

    start: time
    end: time
    zone: str

    def find_end(self, instant: datetime) -> datetime | None:
        """Return when the quiet hours around an instant end; ``None`` outside of them."""
        zone = find_zone(self.zone)
        local = to_local(instant, zone)
        for days in (-1, 0):
            day = local.date() + timedelta(days=days)
            start = to_instant(datetime.combine(day, self.start), zone)
            over = timedelta(days=int(self.end <= self.start))
            end = to_instant(datetime.combine(day + over, self.end), zone)
            if start <= instant < end:
                return end.astimezone(UTC)
        return None
