"""Store writes that complete even if their caller is cancelled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable

T = TypeVar("T")


async def shield_until_done(write: Awaitable[T]) -> T:
    """
    Wait for a write; a cancellation is raised once the outcome is decided.

    A store does not undo a job that it has begun: a caller that went on while the job of a
    cancelled turn was running would read a state that changes a moment later.
    """
    job = asyncio.ensure_future(write)
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        if not job.done():
            await asyncio.wait({job})
        if not job.cancelled():
            # Retrieved, since no caller is left to receive it.
            job.exception()
        raise
