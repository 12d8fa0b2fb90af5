"""
Slots of cron expressions by looking at each minute: no library, no arithmetic of zones.

Expressions are written as sets, so that nothing here reads cron fields either.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
#: Zones with what is odd about them: half an hour of summer time in Lord Howe, the change at
#: midnight in São Paulo. The four years have changes in each.
YEARS = {"Europe/Berlin": 2024, "America/New_York": 2024, "Australia/Lord_Howe": 2024,
         "America/Sao_Paulo": 2015}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A cron expression, and what it means."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    #: Days of the month and of the week (Monday is 0); with both, one that fits is enough.
    days: frozenset[int] | None = None
    weekdays: frozenset[int] | None = None
    #: Each instant, not each time of the day.
    by_instant: bool = False

    def fits_day(self, day: date) -> bool:
        if self.days is None and self.weekdays is None:
            return True
        return day.day in (self.days or ()) or day.weekday() in (self.weekdays or ())


def _every(step: int, end: int) -> frozenset[int]:
    return frozenset(range(0, end, step))


ALL_HOURS = _every(1, 24)
EXPRESSIONS = (
    Expected(text="30 2 * * *", minutes=frozenset({30}), hours=frozenset({2})),
    Expected(text="0 0 * * *", minutes=frozenset({0}), hours=frozenset({0})),
    Expected(text="15,45 0-3 * * *", minutes=frozenset({15, 45}), hours=frozenset(range(4))),
    Expected(
        text="30 2 * * 0", minutes=frozenset({30}), hours=frozenset({2}), weekdays=frozenset({6})
    ),
    Expected(
        text="30 1 25-31 * 7",
        minutes=frozenset({30}),
        hours=frozenset({1}),
        days=frozenset(range(25, 32)),
        weekdays=frozenset({6}),
    ),
    Expected(text="*/30 * * * *", minutes=_every(30, 60), hours=ALL_HOURS, by_instant=True),
    Expected(text="0 */2 * * *", minutes=frozenset({0}), hours=_every(2, 24), by_instant=True),
    Expected(text="*/15 */2 * * *", minutes=_every(15, 60), hours=_every(2, 24), by_instant=True),
    Expected(text="*/20 1,2 * * *", minutes=_every(20, 60), hours=frozenset({1, 2}),
             by_instant=True),
    Expected(
        text="* 0 * * 0", minutes=_every(1, 60), hours=frozenset({0}), weekdays=frozenset({6}),
        by_instant=True,
    ),
)  # fmt: skip


def find_slots(
    expected: Expected, zone: ZoneInfo, start: datetime, end: datetime
) -> list[datetime]:
    """Return the slots in a stretch of time, its end excluded."""
    found = _find_instants if expected.by_instant else _find_times_of_day
    return [one for one in found(expected, zone, start, end) if start <= one < end]


@lru_cache(maxsize=64)
def _list_minutes(
    zone: ZoneInfo, start: datetime, end: datetime
) -> Sequence[tuple[datetime, datetime]]:
    """Return each minute, with what the clocks show."""
    found: list[tuple[datetime, datetime]] = []
    while start < end:
        found.append((start, start.astimezone(zone).replace(tzinfo=None, fold=0)))
        start += MINUTE
    return found


def _find_instants(
    expected: Expected, zone: ZoneInfo, start: datetime, end: datetime
) -> Iterator[datetime]:
    for instant, local in _list_minutes(zone, start, end):
        fits = local.minute in expected.minutes and local.hour in expected.hours
        if fits and expected.fits_day(local.date()):
            yield instant


def _find_times_of_day(
    expected: Expected, zone: ZoneInfo, start: datetime, end: datetime
) -> Iterator[datetime]:
    # From days before: the first minute that shows a time counts.
    shown = _list_minutes(zone, start - timedelta(days=2), end)
    day = shown[0][1].date() + timedelta(days=1)
    times = sorted((hour, minute) for hour in expected.hours for minute in expected.minutes)
    wanted = [
        datetime(one.year, one.month, one.day, hour, minute)  # noqa: DTZ001  (what a clock shows)
        for one in (day + timedelta(days=n) for n in range((end - start).days + 3))
        if expected.fits_day(one)
        for hour, minute in times
    ]
    previous = None
    for instant, local in shown:
        while wanted and local >= wanted[0]:
            wanted.pop(0)
            if instant != previous:
                yield instant
            previous = instant


@lru_cache
def find_changes(zone: ZoneInfo, year: int, *, years: int = 4) -> list[datetime]:
    """Return the hours in which the clocks are changed."""
    hour = datetime(year, 1, 1, tzinfo=UTC)
    end = datetime(year + years, 1, 1, tzinfo=UTC)
    found: list[datetime] = []
    while hour < end:
        later = hour + timedelta(hours=1)
        if hour.astimezone(zone).utcoffset() != later.astimezone(zone).utcoffset():
            found.append(hour)
        hour = later
    return found
