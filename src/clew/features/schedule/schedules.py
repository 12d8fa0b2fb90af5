"""Schedules: when jobs fire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Protocol

from cronsim import CronSim

from clew.features.schedule.zones import find_change, find_zone, get_offset, to_instant, to_local
from clew.record import Record

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_DAY, _SECOND = timedelta(days=1), timedelta(seconds=1)
#: No expression pauses for longer: 29 February on a given day of the week.
_FOREVER: Final = timedelta(days=41 * 366)


class Schedule(Protocol):
    """A rule that says when a job fires, in whole seconds of UTC."""

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first slot after an instant; ``None`` after the last one."""
        ...


class OneTime(Record, kw_only=False):
    """One slot."""

    at: datetime

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the slot if it is later."""
        return self.at if self.at > instant else None


class EveryPeriod(Record, kw_only=False):
    """A slot after each period since an anchor, whatever the clocks of a zone do."""

    period: timedelta
    anchor: datetime

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the next slot on the grid of the anchor."""
        passed = (instant - self.anchor) // self.period
        return self.anchor + max(1, passed + 1) * self.period


class CronRule(Record, kw_only=False):
    """
    Slots by five cron fields and the clocks of a zone.

    Where minute or hour begin with ``*``, each instant at which the clocks show such a time is
    a slot. Other expressions name times of the day, and each is one slot a day: after the gap
    if the clocks skip it, the first time if they show it twice.
    """

    expression: str
    zone: str

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the next slot; ``None`` if no date ever fits."""
        # CronSim sees local times only: with a zone it loses some of them in Lord Howe, and
        # returns past ones in the hour that comes twice.
        minute, hour, *_ = self.expression.split()
        by_instant = minute.startswith("*") or hour.startswith("*")
        find = self._find_instant if by_instant else self._find_time_of_day
        return find(instant, find_zone(self.zone))

    def _find_time_of_day(self, after: datetime, zone: ZoneInfo) -> datetime | None:
        for local in CronSim(self.expression, to_local(after, zone)):
            slot = to_instant(local, zone)
            if slot > after:
                return slot
        return None

    def _find_instant(self, after: datetime, zone: ZoneInfo) -> datetime | None:
        start = after.replace(microsecond=0) + _SECOND
        while start - after < _FOREVER:
            offset = get_offset(start, zone)
            before = (start + offset - _SECOND).replace(tzinfo=None)
            local = next(CronSim(self.expression, before), None)
            if local is None:
                return None
            slot = local.replace(tzinfo=UTC) - offset
            end = find_change(start, min(slot, start + _DAY), zone)
            if end == slot and get_offset(slot, zone) == offset:
                return slot
            # The clocks change at the end, or nothing fits in the day before it.
            start = end if get_offset(end, zone) != offset else max(end, slot - 2 * _DAY)
        return None
