"""Events that a platform pushes over HTTP: a request is answered once its events are stored."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from clew.core.channel_events import ChannelEvent

#: Seconds for which a request waits until its events are stored.
STORE_TIMEOUT: Final = 20.0
#: Seconds between two keepalive batches.
KEEPALIVE_INTERVAL: Final = 30.0


class _PushedBatch:
    """The events of a request that waits until they are stored."""

    def __init__(self, events: Sequence[ChannelEvent]) -> None:
        self.events = events
        self.stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class PushedEvents:
    """The events that a channel was pushed and has not confirmed as stored."""

    def __init__(self) -> None:
        self._incoming: asyncio.Queue[_PushedBatch] = asyncio.Queue()
        #: Yielded, and not confirmed as stored.
        self._unconfirmed: list[_PushedBatch] = []

    async def push(self, events: Sequence[ChannelEvent]) -> bool:
        """
        Hand events to ``receive``; return whether they were stored in time.

        Events that were not may be stored later: a redelivery is recognised.
        """
        batch = _PushedBatch(events)
        self._incoming.put_nowait(batch)
        await asyncio.wait({batch.stored}, timeout=STORE_TIMEOUT)
        return batch.stored.done() and not batch.stored.cancelled()

    async def receive(self) -> AsyncIterator[Sequence[ChannelEvent]]:
        """Yield batches, as ``Channel.receive``."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(KEEPALIVE_INTERVAL):
                    self._unconfirmed.append(await self._incoming.get())
            self._unconfirmed += self._drain_queue()
            yield [event for batch in self._unconfirmed for event in batch.events]
            # The next batch was requested: these are stored.
            for batch in self._unconfirmed:
                if not batch.stored.done():
                    batch.stored.set_result(None)
            self._unconfirmed.clear()

    def close(self) -> None:
        """Release the requests that wait: their events are not stored."""
        self._unconfirmed += self._drain_queue()
        for batch in self._unconfirmed:
            batch.stored.cancel()

    def _drain_queue(self) -> list[_PushedBatch]:
        return [self._incoming.get_nowait() for _ in range(self._incoming.qsize())]
