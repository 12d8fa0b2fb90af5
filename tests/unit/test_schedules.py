"""Schedules: slots in time zones, what is refused, and what becomes of slots that were missed."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from clew.errors import UsageError
from clew.features.schedule.parsing import format_period, parse_schedule
from clew.features.schedule.planning import (
    CatchUp,
    QuietHours,
    SkipReason,
    default_catch_up,
    plan_due_slots,
)
from clew.features.schedule.schedules import CronRule, EveryPeriod, OneTime
from tests.cron_table import EXPRESSIONS, YEARS, Expected, find_changes, find_slots

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def slots_between(rule: CronRule, start: datetime, end: datetime) -> list[datetime]:
    found: list[datetime] = []
    slot = rule.next_after(start - timedelta(seconds=1))
    while slot is not None and slot < end:
        found.append(slot)
        slot = rule.next_after(slot)
    return found


@pytest.mark.parametrize("name", YEARS)
@pytest.mark.parametrize("expected", EXPRESSIONS, ids=lambda one: one.text)
def test_around_each_change_of_the_clocks_the_slots_are_those_of_an_independent_table(
    name: str, expected: Expected
) -> None:
    zone = ZoneInfo(name)
    changes = find_changes(zone, YEARS[name])
    assert len(changes) >= 8
    for change in changes:
        start, end = change - timedelta(hours=30), change + timedelta(hours=30)
        slots = slots_between(CronRule(expected.text, name), start, end)
        assert slots == find_slots(expected, zone, start, end), change


@pytest.mark.parametrize("name", YEARS)
def test_half_past_two_comes_once_on_each_day_of_four_years(name: str) -> None:
    zone = ZoneInfo(name)
    start = datetime(YEARS[name], 1, 1, tzinfo=zone).astimezone(UTC)
    end = datetime(YEARS[name] + 4, 1, 1, tzinfo=zone).astimezone(UTC)
    slots = slots_between(CronRule("30 2 * * *", name), start, end)
    local = [slot.astimezone(zone) for slot in slots]
    assert len({one.date() for one in local}) == len(slots) == 1461
    odd = {one.time() for one in local} - {time(2, 30)}
    # In Lord Howe 2:30 always exists, in São Paulo as well.
    assert odd == ({time(3)} if name in ("Europe/Berlin", "America/New_York") else set())


@pytest.mark.parametrize("expression", ["45 2 * * *", "*/30 * * * *", "0 */2 * * *"])
@pytest.mark.parametrize("name", YEARS)
def test_the_next_slot_is_later_than_any_instant_that_is_asked_about(
    name: str, expression: str
) -> None:
    rule = CronRule(expression, name)
    for change in find_changes(ZoneInfo(name), YEARS[name], years=1):
        instant = change - timedelta(hours=3, microseconds=1)
        while instant < change + timedelta(hours=3):
            slot = rule.next_after(instant)
            assert slot is not None
            assert slot > instant
            instant += timedelta(minutes=7, seconds=13)


def parse(
    *, at: str | None = None, every: str | None = None, cron: str | None = None, zone: str = "UTC"
) -> tuple[str, str]:
    made = parse_schedule(at=at, every=every, cron=cron, zone=zone, now=NOW)
    return made.kind, made.expression


def test_schedules_are_stored_in_their_normal_form() -> None:
    assert parse(at="2026-12-01T08:00", zone="Europe/Berlin") == ("at", "2026-12-01T07:00:00+00:00")
    assert parse(at="2026-12-01 08:00+05:30") == ("at", "2026-12-01T02:30:00+00:00")
    assert parse(every="90 m") == ("every", "1h30m")
    assert parse(cron=" 30  8 * * mon-fri ") == ("cron", "30 8 * * MON-FRI")
    assert parse(cron="@daily") == ("cron", "0 0 * * *")
    assert format_period(timedelta(days=8, seconds=61)) == "8d1m1s"
    stored = parse_schedule(at=None, every="2h", cron=None, zone="UTC", now=NOW)
    anchor = datetime(2026, 11, 29, 7, 5, tzinfo=UTC)
    slot = stored.load(anchor=int(anchor.timestamp() * 1000)).next_after(NOW)
    assert slot == datetime(2026, 11, 29, 13, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"cron": "* * * * * *"}, "has 6 fields, and a cron expression has five"),
        ({"cron": "0 0 31 2 *"}, "the day of month is wrong"),
        ({"cron": "0 0 30 2 *"}, "the day of month is wrong"),
        ({"cron": "0 0 31 2,4 *"}, "the day of month is wrong"),
        ({"cron": "0 0 * 2 1#5 x"}, "has 6 fields"),
        ({"cron": "60 * * * *"}, "the minute is wrong"),
        ({"cron": "@often"}, "there is no '@often'"),
        ({"every": "5s"}, "too short: a job fires once a minute at most"),
        ({"every": "0m"}, "too short"),
        ({"every": "900w"}, "too long"),
        ({"every": "soon"}, "write it as 90s, 15m, 2h"),
        ({"at": "tomorrow at 9"}, "write it as 2026-12-01T08:00"),
        ({"at": "2026-12-01"}, "write it as 2026-12-01T08:00"),
        ({"at": "2026-11-29T11:59"}, "is in the past: it is 2026-11-29T12:00 now"),
        ({"at": "2026-12-01T08:00", "zone": "Mars/Base"}, "there is no time zone 'Mars/Base'"),
        ({}, "exactly one of at, every and cron"),
        ({"every": "1h", "cron": "0 0 * * *"}, "exactly one of at, every and cron"),
    ],
)
def test_what_cannot_be_read_or_never_fires_is_refused_with_what_would_do(
    given: dict[str, str], says: str
) -> None:
    with pytest.raises(UsageError) as raised:
        parse(**given)
    assert says in str(raised.value)


HOURLY = EveryPeriod(timedelta(hours=1), NOW)


def plan(
    first: float, now: float, catch_up: CatchUp, limit: int = 1000
) -> tuple[dict[int, str], float | None]:
    """Return what becomes of the slots, in hours since NOW."""
    due = plan_due_slots(
        HOURLY,
        NOW + timedelta(hours=first),
        now=NOW + timedelta(hours=now),
        catch_up=catch_up,
        limit=limit,
    )
    made = {
        (one.slot - NOW) // timedelta(hours=1): one.reason.value if one.reason else "run"
        for one in due.slots
    }
    return made, due.next_slot and (due.next_slot - NOW) / timedelta(hours=1)


def test_a_slot_on_time_runs_whatever_the_rule_and_none_runs_early() -> None:
    for rule in CatchUp:
        assert plan(1, 1.01, rule) == ({1: "run"}, 2)
        assert plan(1, 0.99, rule) == ({}, 1)


def test_slots_that_were_missed_are_made_up_for_as_the_rule_says() -> None:
    missed = {1: "down", 2: "down"}
    assert plan(1, 3.5, CatchUp.NONE) == ({**missed, 3: "down"}, 4)
    assert plan(1, 3.01, CatchUp.NONE) == ({**missed, 3: "run"}, 4)
    assert plan(1, 3.5, CatchUp.LATEST) == ({**missed, 3: "run"}, 4)
    assert plan(1, 3.5, CatchUp.ALL) == ({1: "run", 2: "run", 3: "run"}, 4)
    made, following = plan(1, 72.5, CatchUp.ALL)
    assert following == 73
    assert list(made.values()) == ["down"] * 48 + ["run"] * 24


@pytest.mark.parametrize("limit", [1, 5, 7, 1000])
@pytest.mark.parametrize("catch_up", CatchUp)
def test_many_missed_slots_come_to_the_same_in_slices(catch_up: CatchUp, limit: int) -> None:
    whole, end = plan(1, 72.5, catch_up)
    made: dict[int, str] = {}
    following: float | None = 1
    while following is not None and following <= 72.5:
        part, following = plan(following, 72.5, catch_up, limit)
        made |= part
    assert (made, following) == (whole, end)


def test_two_slots_within_the_grace_are_one_run() -> None:
    minutely = EveryPeriod(timedelta(minutes=1), NOW)
    first = NOW + timedelta(minutes=1)
    due = plan_due_slots(
        minutely, first, now=NOW + timedelta(minutes=2.5), catch_up=CatchUp.NONE, limit=10
    )
    assert [one.reason for one in due.slots] == [SkipReason.LATER, None]


def test_a_job_makes_up_for_what_is_rare_unless_it_says_otherwise() -> None:
    assert default_catch_up(OneTime(NOW + timedelta(minutes=1)), NOW) is CatchUp.LATEST
    assert default_catch_up(HOURLY, NOW) is CatchUp.NONE
    assert default_catch_up(CronRule("0 8 * * *", "UTC"), NOW) is CatchUp.LATEST
    assert default_catch_up(CronRule("*/30 * * * *", "UTC"), NOW) is CatchUp.NONE


def test_quiet_hours_go_over_midnight_and_end_by_the_clocks_of_their_zone() -> None:
    quiet = QuietHours(time(22), time(7), "Europe/Berlin")
    berlin = ZoneInfo("Europe/Berlin")

    def ends(month: int, day: int, hour: int, minute: int) -> str | None:
        moment = datetime(2026, month, day, hour, minute, tzinfo=berlin)
        found = quiet.find_end(moment.astimezone(UTC))
        return found and found.isoformat()

    assert ends(11, 29, 21, 59) is None
    assert ends(11, 29, 22, 0) == "2026-11-30T06:00:00+00:00"
    assert ends(11, 30, 6, 59) == "2026-11-30T06:00:00+00:00"
    assert ends(11, 30, 7, 0) is None
    assert ends(3, 28, 23, 0) == "2026-03-29T05:00:00+00:00"
    # By day, and for the whole of it.
    assert QuietHours(time(12), time(14), "UTC").find_end(NOW) == NOW + timedelta(hours=2)
    assert QuietHours(time(0), time(0), "UTC").find_end(NOW) == datetime(2026, 11, 30, tzinfo=UTC)
