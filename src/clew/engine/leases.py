"""Keeping a lease while there is work, and stopping in time when it cannot be kept."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from clew.errors import LeaseExpired, LeaseLost, StoreError
from clew.store.transactions import leases

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine

    from clew.core.lease import Lease
    from clew.store.contract import Store

log = structlog.get_logger(__name__)

#: Stop working when this much of a lease is left, or a quarter of it if that is less.
_MARGIN = timedelta(seconds=2)
#: Seconds until the next try where the store is away.
_AGAIN = 0.5
#: A store that has not answered for so many seconds is away.
_SILENT = 0.25


@asynccontextmanager
async def renewing(store: Store, lease: Lease, *, duration: timedelta) -> AsyncGenerator[None]:
    """
    Renew a lease at half life while the block lasts.

    :raises LeaseLost: and ends the block, when another owner has it, or when it could not be
        renewed and its time is nearly over by the monotonic clock
    """
    useful = (duration - min(_MARGIN, duration / 4)).total_seconds()
    deadline = asyncio.timeout(useful)
    keeping = _Keeping(store, lease, duration, deadline, useful)
    try:
        async with deadline, _background(keeping.renew()):
            yield
    except TimeoutError:
        if not deadline.expired():
            raise
        log.warning("lease_lost", conversation=lease.conversation_id, fence=lease.fence)
        kind = LeaseExpired if keeping.away else LeaseLost
        raise kind(lease.conversation_id, owner=lease.owner, fence=lease.fence) from None


@asynccontextmanager
async def _background(work: Coroutine[None, None, None]) -> AsyncGenerator[None]:
    task = asyncio.create_task(work, name="lease")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


class _Keeping:
    """Renews one lease."""

    def __init__(
        self,
        store: Store,
        lease: Lease,
        duration: timedelta,
        deadline: asyncio.Timeout,
        useful: float,
    ) -> None:
        self._store, self._lease, self._duration = store, lease, duration
        self._deadline, self._useful = deadline, useful
        #: The store did not answer when it was last asked.
        self.away = False

    async def renew(self) -> None:
        """At half life, and again soon where the store is away; ends when the lease is lost."""
        loop, half = asyncio.get_running_loop(), self._duration.total_seconds() / 2
        while True:
            await asyncio.sleep(min(_AGAIN, half / 4) if self.away else half)
            # Counted from before the write: it may have waited, and the lease runs from when it
            # was made.
            asked = loop.time()
            waiting = loop.call_later(_SILENT, self._silent)
            try:
                await self._store.write(leases.renew_lease, self._lease, duration=self._duration)
            except LeaseLost:
                self.away = False
                self._deadline.reschedule(loop.time())
                return
            except StoreError as error:
                self.away = True
                log.warning(
                    "lease_not_renewed", conversation=self._lease.conversation_id, error=str(error)
                )
            else:
                self.away = False
                self._deadline.reschedule(asked + self._useful)
            finally:
                waiting.cancel()

    def _silent(self) -> None:
        self.away = True
