"""The settings of jobs."""

from __future__ import annotations

import re
from datetime import time
from typing import TYPE_CHECKING, Final

from clew.config.builtin_types import TIMEZONE, integer_type
from clew.config.fields import setting
from clew.config.setting_type import InvalidValue, ReadContext, SettingType
from clew.record import Record

if TYPE_CHECKING:
    from clew.config.settings import Settings
    from clew.features.schedule.planning import QuietHours

_CLOCK: Final = r"([01]\d|2[0-3]):([0-5]\d)"
_HOURS: Final = rf"{_CLOCK}-{_CLOCK}"


def _parse_hours(value: object, _: ReadContext) -> tuple[time, time]:
    match = re.fullmatch(_HOURS, value.replace(" ", "")) if isinstance(value, str) else None
    if match is None:
        raise InvalidValue
    return time(int(match[1]), int(match[2])), time(int(match[3]), int(match[4]))


HOURS: Final = SettingType(
    name="part of a day",
    expects='a part of a day such as "22:00-07:00"',
    read=_parse_hours,
    schema={"type": "string", "pattern": f"^{_HOURS}$"},
    show=lambda hours: f"{hours[0]:%H:%M}-{hours[1]:%H:%M}",
)


class ScheduleSettings(Record):
    """Jobs that run by themselves."""

    timezone: str | None = setting(
        TIMEZONE,
        None,
        "The time zone of new jobs, and of the quiet hours.",
        default_doc="that of `session.timezone`",
    )
    quiet_hours: tuple[time, time] | None = setting(
        HOURS,
        None,
        "A part of each day in which no job runs, except one that ignores it. What was due "
        "meanwhile runs once when it ends.",
    )
    keep_days: int = setting(
        integer_type(least=1),
        90,
        "Days for which the log of a job is kept, and a job that has ended.",
        live=True,
    )


def find_zone_name(settings: ScheduleSettings, all_settings: Settings) -> str:
    """Return the time zone of new jobs."""
    return settings.timezone or all_settings.session.timezone


def make_quiet_hours(settings: ScheduleSettings, all_settings: Settings) -> QuietHours | None:
    """Return the quiet hours of the settings."""
    from clew.features.schedule.planning import QuietHours  # noqa: PLC0415  (settings are read by every command)

    if settings.quiet_hours is None:
        return None
    return QuietHours(*settings.quiet_hours, find_zone_name(settings, all_settings))
