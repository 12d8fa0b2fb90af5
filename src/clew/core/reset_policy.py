"""Automatic resets: after a pause, or at a time of day."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from clew.core.session import DAILY, IDLE
from clew.record import Record

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo


class ResetPolicy(Record):
    """Conditions that end a conversation; none by default."""

    #: The pause after which it ends.
    idle: timedelta | None = None
    #: The local time of day at which it ends.
    daily_at: time | None = None
    timezone: ZoneInfo | None = None


def expiry_reason(policy: ResetPolicy, *, last_used: datetime, now: datetime) -> str | None:
    """
    Return why a conversation last used at ``last_used`` has expired; else ``None``.

    A clock that went back expires nothing.
    """
    if now <= last_used:
        return None
    if policy.idle is not None and now - last_used >= policy.idle:
        return IDLE
    if policy.daily_at is not None and last_used < last_daily_reset(policy, now):
        return DAILY
    return None


def expiry_cutoff(policy: ResetPolicy, now: datetime) -> datetime:
    """Return the time before which a conversation's last use means that it has expired."""
    ends = [now - policy.idle] if policy.idle is not None else []
    if policy.daily_at is not None:
        ends.append(last_daily_reset(policy, now))
    return max(ends)


def last_daily_reset(policy: ResetPolicy, now: datetime) -> datetime:
    """
    Return the last time up to ``now`` at which the daily reset was due.

    A local time skipped by a clock change is taken on the old clock (02:30 is then 03:30);
    a repeated one counts the first time.
    """
    assert policy.daily_at is not None
    zone = policy.timezone or UTC
    local = now.astimezone(zone)
    # A zone that moves over the date line leaves a whole day out.
    for days in (0, 1, 2):
        day = (local - timedelta(days=days)).date()
        # Through UTC: only there do times of a day with a clock change compare.
        due = datetime.combine(day, policy.daily_at, tzinfo=zone).astimezone(UTC)
        if due <= now:
            return due
    raise AssertionError("a day has passed within three")
