"""A clock that a test sets ahead."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from clew.clock import SystemClock

if TYPE_CHECKING:
    from datetime import datetime


class Later:
    """A clock that is ahead of the machine's."""

    def __init__(self, ahead: timedelta = timedelta(0)) -> None:
        self.ahead = ahead

    def now(self) -> datetime:
        return SystemClock().now() + self.ahead

    def monotonic(self) -> float:
        return SystemClock().monotonic() + self.ahead.total_seconds()
