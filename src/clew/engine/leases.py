"""Keeping a lease while there is work, and stopping in time when it cannot be kept."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from clew.errors import LeaseLost, StoreError
from clew.store.transactions import leases

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine

    from clew.core.lease import Lease
    from clew.store.contract import Store

log = structlog.get_logger(__name__)

#: Stop working when this much of a lease is left, or a quarter of it if that is less.
_MARGIN = timedelta(seconds=2)


@asynccontextmanager
async def renewing(store: Store, lease: Lease, *, duration: timedelta) -> AsyncGenerator[None]:
    """
    Renew a lease at half life while the block lasts.

    :raises LeaseLost: and ends the block, when another owner has it, or when it could not be
        renewed and its time is nearly over by the monotonic clock
    """
    useful = (duration - min(_MARGIN, duration / 4)).total_seconds()
    deadline = asyncio.timeout(useful)
    try:
        async with deadline, _background(_renew(store, lease, duration, deadline, useful)):
            yield
    except TimeoutError:
        if not deadline.expired():
            raise
        log.warning("lease_lost", conversation=lease.conversation_id, fence=lease.fence)
        raise LeaseLost(lease.conversation_id, owner=lease.owner, fence=lease.fence) from None


@asynccontextmanager
async def _background(work: Coroutine[None, None, None]) -> AsyncGenerator[None]:
    task = asyncio.create_task(work, name="lease")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _renew(
    store: Store, lease: Lease, duration: timedelta, deadline: asyncio.Timeout, useful: float
) -> None:
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(duration.total_seconds() / 2)
        # Counted from before the write: it may have waited, and the lease runs from when it was
        # made.
        asked = loop.time()
        try:
            await store.write(leases.renew, lease, duration=duration)
        except LeaseLost:
            deadline.reschedule(loop.time())
            return
        except StoreError as error:
            log.warning("lease_not_renewed", conversation=lease.conversation_id, error=str(error))
        else:
            deadline.reschedule(asked + useful)
