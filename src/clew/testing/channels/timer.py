"""A timer that advances only on request."""

from __future__ import annotations

import asyncio


class FakeTimer:
    """A ``Timer`` of the gateway whose time passes only by ``advance``."""

    def __init__(self, *, at: float = 1_000_000.0) -> None:
        self._now = at
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        return self._now

    def epoch_millis(self) -> int:
        return int(self._now * 1000)

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sleeper = (self._now + seconds, woken)
        self._sleepers.append(sleeper)
        try:
            if seconds > 0:
                await woken
            else:
                await asyncio.sleep(0)
        finally:
            self._sleepers.remove(sleeper)

    def advance(self, seconds: float) -> None:
        """Advance the time, and wake the sleepers that are due."""
        self._now += seconds
        for at, woken in self._sleepers:
            if at <= self._now and not woken.done():
                woken.set_result(None)
