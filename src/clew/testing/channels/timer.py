"""A timer that stands still until it is told to go on."""

from __future__ import annotations

import asyncio


class FakeTimer:
    """Implements the gateway's ``Timer``; ``advance`` lets time pass."""

    def __init__(self, *, at: float = 1_000_000.0) -> None:
        self._at = at
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        return self._at

    def millis(self) -> int:
        return int(self._at * 1000)

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sleeper = (self._at + seconds, woken)
        self._sleepers.append(sleeper)
        try:
            if seconds > 0:
                await woken
            else:
                await asyncio.sleep(0)
        finally:
            self._sleepers.remove(sleeper)

    @property
    def next_at(self) -> float | None:
        """When the first of those who sleep wants to be woken."""
        return min((at for at, _ in self._sleepers), default=None)

    def advance(self, seconds: float) -> None:
        """Let time pass, and wake whoever has slept enough."""
        self._at += seconds
        for at, woken in self._sleepers:
            if at <= self._at and not woken.done():
                woken.set_result(None)
