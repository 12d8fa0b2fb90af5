"""Clock and sleep behind a protocol that tests can replace."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Timer(Protocol):
    """A clock for measuring waits."""

    def monotonic(self) -> float:
        """Return seconds that never go backwards."""
        ...

    def epoch_millis(self) -> int:
        """Return milliseconds since the epoch, in which waits are stored across restarts."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemTimer:
    """The system clock."""

    def monotonic(self) -> float:
        return time.monotonic()

    def epoch_millis(self) -> int:
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
