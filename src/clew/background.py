"""Background tasks: run one during a block, cancel some and wait for their end."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine

log = structlog.get_logger(__name__)


@asynccontextmanager
async def run_in_background(
    work: Coroutine[None, None, None], *, name: str
) -> AsyncGenerator[asyncio.Task[None]]:
    """Run work as a task, and cancel it when the block ends."""
    task = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        await cancel_and_wait(task)


async def cancel_and_wait(*tasks: asyncio.Future[Any], grace: float | None = None) -> None:
    """
    Cancel tasks and wait until they have ended; their outcomes are discarded.

    :param grace: seconds to wait; a task that cannot be cancelled is logged and left behind
    """
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=grace)
    for task in tasks:
        if not task.done():
            log.warning("task_left_behind", task=str(task))
        elif not task.cancelled():
            # Retrieved, so that asyncio does not report it as lost.
            task.exception()


async def finish_when_cancelled(work: Coroutine[None, None, None], *, grace: float) -> None:
    """
    Run work that a cancellation does not break off in the middle.

    :param grace: seconds that it gets after a cancellation
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait({task}, timeout=grace)
        await cancel_and_wait(task)
        raise
