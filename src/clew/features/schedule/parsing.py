"""Reading of schedules that people and models write; what is refused says what would do."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

from cronsim import CronSim, CronSimError

from clew.clock import from_millis
from clew.errors import UsageError
from clew.features.schedule.schedules import CronRule, EveryPeriod, OneTime
from clew.features.schedule.zones import find_zone, to_instant
from clew.record import Record

if TYPE_CHECKING:
    from clew.features.schedule.schedules import Schedule

ScheduleKind = Literal["at", "every", "cron"]

#: The shortest and the longest period.
SHORTEST, LONGEST = timedelta(minutes=1), timedelta(days=366)
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_PERIOD: Final = re.compile(r"(?:\d{1,9}[smhdw])+")
_NAMED: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FIELDS: Final = ("minute", "hour", "day of the month", "month", "day of the week")


class ScheduleText(Record):
    """A schedule as it is stored: checked, in its normal form."""

    kind: ScheduleKind
    expression: str
    zone: str

    def load(self, *, anchor: int) -> Schedule:
        """Return the schedule; periods are counted from ``anchor``, in milliseconds."""
        if self.kind == "at":
            return OneTime(datetime.fromisoformat(self.expression))
        if self.kind == "every":
            start = from_millis(anchor // 1000 * 1000)
            return EveryPeriod(_read_period(self.expression), start)
        return CronRule(self.expression, self.zone)


def parse_schedule(
    *, at: str | None, every: str | None, cron: str | None, zone: str, now: datetime
) -> ScheduleText:
    """
    Return the schedule that exactly one of ``at``, ``every`` and ``cron`` describes.

    :raises UsageError: if none or several do, or if it cannot be read or never fires
    """
    given = {"at": at, "every": every, "cron": cron}
    named = {kind: text.strip() for kind, text in given.items() if text and text.strip()}
    if len(named) != 1:
        raise UsageError("a job has one schedule: give exactly one of at, every and cron")
    find_zone(zone)
    if "at" in named:
        return _parse_time(named["at"], zone, now)
    if "every" in named:
        period = _parse_period(named["every"])
        return ScheduleText(kind="every", expression=format_period(period), zone=zone)
    return _parse_cron(named["cron"], zone, now)


def _parse_time(text: str, zone: str, now: datetime) -> ScheduleText:
    try:
        moment = datetime.fromisoformat(text).replace(microsecond=0)
    except ValueError:
        moment = None
    if moment is None or ":" not in text:
        raise UsageError(
            f"{text!r} is no time: write it as 2026-12-01T08:00, with +01:00 or Z after it if it"
            f" is not a time in {zone}"
        )
    if moment.tzinfo is None:
        instant = to_instant(moment, find_zone(zone))
    else:
        instant = moment.astimezone(UTC)
    if instant <= now:
        raise UsageError(
            f"{text!r} is in the past: it is {now.astimezone(find_zone(zone)):%Y-%m-%dT%H:%M} now"
        )
    return ScheduleText(kind="at", expression=instant.isoformat(), zone=zone)


def _parse_period(text: str) -> timedelta:
    compact = text.lower().replace(" ", "")
    if not _PERIOD.fullmatch(compact):
        raise UsageError(f"{text!r} is no period: write it as 90s, 15m, 2h, 1d or 1h30m")
    period = _read_period(compact)
    if period < SHORTEST:
        raise UsageError(f"{text!r} is too short: a job fires once a minute at most (1m)")
    if period > LONGEST:
        raise UsageError(f"{text!r} is too long: use cron for what happens once a year or less")
    return period


def _read_period(compact: str) -> timedelta:
    parts = re.findall(r"(\d+)([smhdw])", compact)
    seconds = sum(int(number) * _UNITS[unit] for number, unit in parts)
    return timedelta(seconds=min(seconds, 10**11))


def format_period(period: timedelta) -> str:
    """Return a period as people write it: ``1h30m``."""
    left, parts = int(period.total_seconds()), ""
    for unit in ("d", "h", "m", "s"):
        number, left = divmod(left, _UNITS[unit])
        parts += f"{number}{unit}" if number else ""
    return parts


def _parse_cron(text: str, zone: str, now: datetime) -> ScheduleText:
    expression = _NAMED.get(text.lower(), text).upper()
    fields = expression.split()
    if text.startswith("@") and text.lower() not in _NAMED:
        raise UsageError(f"there is no {text!r}: there are {', '.join(_NAMED)}")
    if len(fields) != len(_FIELDS):
        raise UsageError(
            f"{text!r} has {len(fields)} fields, and a cron expression has five: "
            f"{', '.join(_FIELDS)}; seconds are not among them. An example: 30 8 * * 1-5"
        )
    expression = " ".join(fields)
    try:
        CronSim(expression, now)
    except CronSimError as error:
        reason = str(error).removeprefix("Bad ").replace("-", " ")
        raise UsageError(
            f"{text!r} cannot be read: the {reason} is wrong. An example: 30 8 * * 1-5 is 8:30"
            " from Monday to Friday"
        ) from None
    made = ScheduleText(kind="cron", expression=expression, zone=zone)
    if CronRule(expression, zone).next_after(now) is None:
        raise UsageError(f"{text!r} never fires: no day has this date")
    return made
