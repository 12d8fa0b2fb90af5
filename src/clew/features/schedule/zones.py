"""
Local times of a zone as instants, where the clock is put forward or back.

A local time that does not exist is the first instant after the gap; one that exists twice is the
first of the two.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from clew.errors import UsageError

_SECOND = timedelta(seconds=1)


@lru_cache(maxsize=256)
def find_zone(name: str) -> ZoneInfo:
    """
    Return a zone by its name.

    :raises UsageError: if there is none
    """
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise UsageError(
            f"there is no time zone {name!r}: use a name such as Europe/Berlin or UTC"
        ) from None


def get_offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    """Return how far the clocks of a zone are ahead of UTC at an instant."""
    offset = instant.astimezone(zone).utcoffset()
    assert offset is not None
    return offset


def to_local(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return what the clocks of a zone show at an instant, without the zone."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def to_instant(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant of a local time; in a gap, the first one after it."""
    instant = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if to_local(instant, zone) == local:
        return instant
    # By the clock after the gap the same reading lies before the gap.
    return find_change(local.replace(tzinfo=zone, fold=1).astimezone(UTC), instant, zone)


def find_change(start: datetime, end: datetime, zone: ZoneInfo) -> datetime:
    """Return the first second with another offset than at ``start``; ``end`` if none has."""
    offset = get_offset(start, zone)
    if get_offset(end, zone) == offset:
        return end
    while end - start > _SECOND:
        middle = start + (end - start) // 2 // _SECOND * _SECOND
        if get_offset(middle, zone) == offset:
            start = middle
        else:
            end = middle
    return end
