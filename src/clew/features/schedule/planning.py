"""
What becomes of each slot: it starts a run, or it is recorded why it does not.

Slots follow from the last slot, not from the time at which somebody looks, so that none is
forgotten and none comes twice.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

from clew.features.schedule.zones import find_zone, to_instant, to_local

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    """What became of a slot."""

    STARTED = "started"  #: its run was accepted and has not ended
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"  #: on purpose; the reason is stored
    MISSED = "missed"  #: nothing was running at the time


class SkipReason(enum.Enum):
    """Why a slot started no run."""

    DOWN = "down"  #: nothing was running
    LATER = "later"  #: a later slot was due as well
    RUNNING = "running"  #: the run before had not ended
    WAITING = "waiting"  #: the run before waits for an answer
    QUIET = "quiet"  #: in the quiet hours
    BUDGET = "budget"  #: the tokens of the day are used up


@dataclass(frozen=True, slots=True)
class PlannedSlot:
    """A due slot; without a reason it starts a run."""

    slot: datetime
    reason: SkipReason | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DueSlots:
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
    schedule: Schedule, first: datetime, *, now: datetime, catch_up: CatchUp, limit: int
) -> DueSlots:
    """
    Plan the slots from ``first`` until now, ``limit`` of them at most.

    Those that are left for the next call are missed ones, whatever the rule; which slots make
    up for them is decided when the last one is reached.
    """
    due: list[datetime] = []
    slot: datetime | None = first
    while slot is not None and slot <= now and len(due) < limit:
        due.append(slot)
        slot = schedule.next_after(slot)
    rest = _count_due(schedule, slot, now, MAX_CAUGHT_UP)
    kept = _count_runs(due, rest, now=now, catch_up=catch_up)
    planned = [
        PlannedSlot(one, None if n >= len(due) - kept else _explain_missed(due, n, rest, now))
        for n, one in enumerate(due)
    ]
    return DueSlots(slots=planned, next_slot=slot)


def _count_due(schedule: Schedule, slot: datetime | None, now: datetime, limit: int) -> int:
    found = 0
    while slot is not None and slot <= now and found < limit:
        found += 1
        slot = schedule.next_after(slot)
    return found


def _count_runs(due: Sequence[datetime], rest: int, *, now: datetime, catch_up: CatchUp) -> int:
    """Return how many of the last slots start a run, given how many more are due after them."""
    if not due:
        return 0
    if catch_up is CatchUp.ALL:
        return max(0, min(len(due), MAX_CAUGHT_UP - rest))
    if rest or (catch_up is CatchUp.NONE and now - due[-1] > GRACE):
        return 0
    return 1


def _explain_missed(due: Sequence[datetime], n: int, rest: int, now: datetime) -> SkipReason:
    is_last = n == len(due) - 1 and not rest
    return SkipReason.DOWN if is_last or now - due[n] > GRACE else SkipReason.LATER


@dataclass(frozen=True, slots=True)
class QuietHours:
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
