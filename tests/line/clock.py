"""Clocks that are put forward by hand."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


class ShiftedClock:
    """Goes as the machine's does, ahead of it."""

    def __init__(self) -> None:
        self._ahead = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead.total_seconds()

    def advance(self, **by: float) -> None:
        """``advance(seconds=3)``."""
        self._ahead += timedelta(**by)


class StillClock(ShiftedClock):
    """Stands still but for that."""

    def __init__(self) -> None:
        super().__init__()
        self._start = datetime.now(UTC)

    def now(self) -> datetime:
        return self._start + self._ahead
