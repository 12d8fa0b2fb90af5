"""A clock that goes as the machine's, and is put forward by hand."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


class ShiftedClock:
    def __init__(self) -> None:
        self._ahead = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead.total_seconds()

    def advance(self, **by: float) -> None:
        """``advance(seconds=3)``."""
        self._ahead += timedelta(**by)
