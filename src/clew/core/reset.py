"""Resets: when a conversation is over by itself, by a pause or by the time of day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from clew.core.session import DAILY, IDLE

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo


@dataclass(frozen=True, kw_only=True, slots=True)
class ResetPolicy:
    """What ends a conversation; nothing by default."""

    #: The pause after which it ends.
    idle: timedelta | None = None
    #: The local time of day at which it ends.
    daily_at: time | None = None
    timezone: ZoneInfo | None = None


def expired(policy: ResetPolicy, *, last_used: datetime, now: datetime) -> str | None:
    """
    Why a conversation last used at ``last_used`` is over by now; ``None`` if it is not.

    A clock that went back ends nothing.
    """
    if now <= last_used:
        return None
    if policy.idle is not None and now - last_used >= policy.idle:
        return IDLE
    if policy.daily_at is not None and last_used < last_reset(policy, now):
        return DAILY
    return None


def used_before(policy: ResetPolicy, now: datetime) -> datetime:
    """Conversations that were last used before this moment are over; all others are not."""
    ends = [now - policy.idle] if policy.idle is not None else []
    if policy.daily_at is not None:
        ends.append(last_reset(policy, now))
    return max(ends)


def last_reset(policy: ResetPolicy, now: datetime) -> datetime:
    """
    The last moment up to ``now`` at which the daily reset was due.

    A local time that a clock change leaves out counts by the clock as it was before (02:30 is at
    03:30 then); one that comes twice counts the first time.
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
