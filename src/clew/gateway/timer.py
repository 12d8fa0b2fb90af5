"""Waiting, by a clock that tests can replace."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Timer(Protocol):
    """What waits are measured with."""

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    def millis(self) -> int:
        """Milliseconds since the epoch: what waits are kept in over restarts."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemTimer:
    """This machine's clock."""

    def monotonic(self) -> float:
        return time.monotonic()

    def millis(self) -> int:
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
