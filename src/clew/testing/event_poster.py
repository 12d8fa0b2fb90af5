"""Base of fake platforms that post their events to the gateway, each until it is accepted."""

from __future__ import annotations

import abc
import asyncio
from collections import deque
from typing import TYPE_CHECKING

import httpx2

from clew.testing.fake_platform import FakePlatform
from clew.testing.faults import CallFault, FaultInjector

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

#: Seconds between two attempts to post an event.
_RETRY_PAUSE = 0.05


class EventPoster(FakePlatform):
    """A platform that posts events one by one, each until it is answered with 2xx."""

    def __init__(self, *, faults: FaultInjector | None = None, log: Path | None = None) -> None:
        super().__init__(faults=faults, log=log)
        self._target: str | None = None
        self._pending_events: deque[tuple[str, bytes]] = deque()
        #: Status of each posted event, in order; 0 where there was no response.
        self.statuses: list[int] = []

    @abc.abstractmethod
    def sign_headers(self, id_: str, body: bytes) -> Mapping[str, str]:
        """Return the headers of a request that is sent now."""

    @property
    def pending_count(self) -> int:
        """Return the number of events that are not stored."""
        with self._lock:
            return len(self._pending_events)

    def _queue_event(self, id_: str, body: bytes) -> None:
        with self._lock:
            self._pending_events.append((id_, body))

    async def post_events(
        self, hand_in: Callable[[Mapping[str, str], bytes], Awaitable[int]]
    ) -> None:
        """Post events, indefinitely; ``hand_in`` posts one and returns the status."""
        while True:
            with self._lock:
                first = self._pending_events[0] if self._pending_events else None
            if first is None:
                await asyncio.sleep(0.005)
            elif await self._post_event(hand_in, *first):
                with self._lock:
                    self._pending_events.popleft()
            else:
                await asyncio.sleep(_RETRY_PAUSE)

    async def _post_event(
        self, hand_in: Callable[[Mapping[str, str], bytes], Awaitable[int]], id_: str, body: bytes
    ) -> bool:
        fault = self._draw_fault()
        if fault is CallFault.CUT:
            return False
        try:
            status = await hand_in(self.sign_headers(id_, body), body)
        except (httpx2.HTTPError, OSError):
            status = 0
        self.statuses.append(status)
        return 200 <= status < 300 and fault is not CallFault.LOST

    def _draw_fault(self) -> CallFault:
        """Draw a random fault; planned faults apply to the answers only."""
        with self._lock:
            if self.faults.draw_chance(self.faults.cut):
                return CallFault.CUT
            return (
                CallFault.LOST
                if self.faults.draw_chance(self.faults.duplicated)
                else CallFault.NONE
            )

    def set_target(self, url: str) -> None:
        """Post events to this URL from now on."""
        first, self._target = self._target is None, url
        if first:
            self._loop.call_soon_threadsafe(self._start_posting)

    def _start_posting(self) -> None:
        # Ends with the connections, when the server stops.
        task = self._loop.create_task(self._post_to_target())
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _post_to_target(self) -> None:
        async with httpx2.AsyncClient(timeout=30) as client:

            async def hand_in(headers: Mapping[str, str], body: bytes) -> int:
                assert self._target is not None
                return (await client.post(self._target, content=body, headers=headers)).status_code

            await self.post_events(hand_in)
