"""Time as an injected dependency: aware UTC for records, monotonic for durations."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLI = timedelta(milliseconds=1)


class Clock(Protocol):
    """Source of time; tests inject their own."""

    def now(self) -> datetime:
        """Return the wall-clock time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        ...


class SystemClock:
    """Clock of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


def now_millis() -> int:
    """Return the wall-clock time of this machine, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def to_millis(moment: datetime) -> int:
    """Return milliseconds since the epoch, as the store keeps times."""
    return (moment - EPOCH) // _MILLI


def from_millis(millis: int) -> datetime:
    """Return the time, aware, in UTC."""
    return EPOCH + millis * _MILLI
