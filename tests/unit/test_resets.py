"""Idle and daily resets: by the local time of day, over both clock changes, whatever clocks do."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from clew.core.reset_policy import ResetPolicy, expiry_cutoff, expiry_reason, last_daily_reset

BERLIN = ZoneInfo("Europe/Berlin")
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def daily(hour: int, minute: int = 0) -> ResetPolicy:
    return ResetPolicy(daily_at=time(hour, minute), timezone=BERLIN)


@pytest.mark.parametrize(
    ("policy", "now", "due"),
    [
        (daily(4), "2026-07-01T02:00", "2026-07-01T02:00"),
        (daily(4), "2026-07-01T01:59", "2026-06-30T02:00"),
        (daily(4), "2026-01-10T12:00", "2026-01-10T03:00"),
        # The clock goes forward from 02:00 to 03:00 at 01:00 UTC.
        (daily(4), "2026-03-29T02:00", "2026-03-29T02:00"),
        (daily(2, 30), "2026-03-29T01:29", "2026-03-28T01:30"),
        (daily(2, 30), "2026-03-29T01:30", "2026-03-29T01:30"),
        # It goes back from 03:00 to 02:00 at 01:00 UTC: 02:30 comes twice.
        (daily(4), "2026-10-25T03:00", "2026-10-25T03:00"),
        (daily(2, 30), "2026-10-25T00:30", "2026-10-25T00:30"),
        (daily(2, 30), "2026-10-25T01:45", "2026-10-25T00:30"),
        (ResetPolicy(daily_at=time(4)), "2026-07-01T05:00", "2026-07-01T04:00"),
        # Samoa went over the date line: after the 29th came the 31st.
        (
            ResetPolicy(daily_at=time(4), timezone=ZoneInfo("Pacific/Apia")),
            "2011-12-30T10:30",
            "2011-12-29T14:00",
        ),
    ],
)
def test_a_daily_reset_is_due_at_its_local_time(policy: ResetPolicy, now: str, due: str) -> None:
    assert last_daily_reset(policy, at(now)) == at(due)


def test_every_day_has_one_daily_reset_also_those_with_a_clock_change() -> None:
    for policy in (daily(0), daily(2, 30), daily(4), daily(23, 59)):
        now, dues = at("2026-01-01T12:00"), set[datetime]()
        while now < at("2027-01-01T12:00"):
            dues.add(last_daily_reset(policy, now))
            now += HOUR / 2
        assert len(dues) in (365, 366)
        gaps = {later - earlier for earlier, later in pairwise(sorted(dues))}
        assert gaps <= {DAY - HOUR, DAY, DAY + HOUR}


def test_a_conversation_is_over_by_a_pause_or_by_the_hour() -> None:
    now = at("2026-07-01T12:00")
    idle, both = ResetPolicy(idle=HOUR), ResetPolicy(idle=DAY, daily_at=time(4), timezone=BERLIN)
    assert expiry_reason(ResetPolicy(), last_used=now - 999 * DAY, now=now) is None
    assert expiry_reason(idle, last_used=now - HOUR, now=now) == "idle"
    assert expiry_reason(idle, last_used=now - HOUR + timedelta(seconds=1), now=now) is None
    assert expiry_reason(both, last_used=now - DAY, now=now) == "idle"
    assert expiry_reason(both, last_used=at("2026-07-01T01:59"), now=now) == "daily"
    assert expiry_reason(both, last_used=at("2026-07-01T02:00"), now=now) is None


def test_a_clock_that_went_back_ends_nothing() -> None:
    now = at("2026-07-01T12:00")
    policy = ResetPolicy(idle=HOUR, daily_at=time(4), timezone=BERLIN)
    assert expiry_reason(policy, last_used=now + 40 * DAY, now=now) is None


def test_the_watcher_looks_for_those_that_accept_would_end() -> None:
    now = at("2026-07-01T12:00")
    for policy in (ResetPolicy(idle=HOUR), daily(4), ResetPolicy(idle=DAY, daily_at=time(4))):
        edge = expiry_cutoff(policy, now)
        before = edge - timedelta(seconds=1)
        assert expiry_reason(policy, last_used=before, now=now) is not None
        assert expiry_reason(policy, last_used=edge + timedelta(seconds=1), now=now) is None
