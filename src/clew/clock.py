"""Time as a value that is handed in: aware UTC for records, monotonic for durations."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLI = timedelta(milliseconds=1)


class Clock(Protocol):
    """Where the time comes from; tests hand in their own."""

    def now(self) -> datetime:
        """The wall clock, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


def to_millis(moment: datetime) -> int:
    """Milliseconds since the epoch, as the store keeps times."""
    return (moment - EPOCH) // _MILLI


def from_millis(millis: int) -> datetime:
    """The moment, aware, in UTC."""
    return EPOCH + millis * _MILLI
