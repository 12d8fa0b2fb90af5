"""Writes that are waited for even by a caller who is cancelled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable

T = TypeVar("T")


async def uncancelled(write: Awaitable[T]) -> T:
    """
    Wait for a write; a cancellation comes through once its outcome is decided.

    A store does not take back a job that it has begun: who goes on while the job of a cancelled
    turn is under way would read what is true no more a moment later.
    """
    job = asyncio.ensure_future(write)
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        if not job.done():
            await asyncio.wait({job})
        if not job.cancelled():
            # Retrieved: nobody is left to hear of it.
            job.exception()
        raise
