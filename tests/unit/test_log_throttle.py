"""Repeated log messages are logged once a minute."""

from __future__ import annotations

import structlog

from clew.engine.log_throttle import LogThrottle
from clew.errors import StoreFull


def test_the_same_line_is_due_once_in_an_interval_and_others_at_once() -> None:
    now = 0.0
    throttle = LogThrottle(interval=60, monotonic=lambda: now)
    assert [throttle.is_due(text) for text in ("full", "full", "away")] == [True, False, True]
    now = 59.9
    assert not throttle.is_due("full")
    now = 60.0
    assert throttle.is_due("full")
    assert not throttle.is_due("full")


def test_the_throttle_remembers_a_limited_number_of_keys() -> None:
    throttle = LogThrottle(monotonic=lambda: 0.0)
    assert all(throttle.is_due(number) for number in range(2000))
    assert not throttle.is_due(1999)
    assert throttle.is_due(0)


def test_a_failing_store_is_named_with_what_it_held_up() -> None:
    throttle = LogThrottle()
    with structlog.testing.capture_logs() as logs:
        for number in range(3):
            throttle.warn_store_failure(
                structlog.get_logger(), "store_failed", StoreFull("no room"), n=number
            )
    (line,) = logs
    assert (line["event"], line["error"], line["n"]) == ("store_failed", "no room", 0)
