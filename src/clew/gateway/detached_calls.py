"""
Calls that run to their end, whether or not their caller still waits.

httpx can lose a connection of its pool for good if a request is cancelled while it takes one or
gives it back. Once all are lost, no call to the platform gets through until a restart.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from clew.background import cancel_and_wait

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

T = TypeVar("T")

#: Seconds after which a call is abandoned, although that may cost a connection.
MAX_DURATION = 120.0


class DetachedCalls:
    """The running calls of one HTTP client."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Return the result of a call; a cancellation leaves it running."""
        task = asyncio.create_task(_run_bounded(call), name="platform-call")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def cancel_all(self) -> None:
        """Cancel the calls that still run: their client is being closed."""
        await cancel_and_wait(*self._tasks)


async def _run_bounded(call: Coroutine[Any, Any, T]) -> T:
    async with asyncio.timeout(MAX_DURATION):
        return await call
