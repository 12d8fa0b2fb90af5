"""Lease renewal during work, and a timely stop when it fails."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from clew.background import run_in_background
from clew.errors import LeaseExpired, LeaseLost, StoreError
from clew.store.transactions import leases

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from clew.core.lease import Lease
    from clew.store.contract import Store

log = structlog.get_logger(__name__)

#: Stop working when this much of a lease is left, or a quarter of it if that is less.
_SAFETY_MARGIN = timedelta(seconds=2)
#: Seconds until the next attempt while the store is unavailable.
_RETRY_PAUSE = 0.5
#: Seconds without an answer after which the store counts as unavailable.
_RESPONSE_TIMEOUT = 0.25


@asynccontextmanager
async def keep_lease(store: Store, lease: Lease, *, duration: timedelta) -> AsyncGenerator[None]:
    """
    Renew a lease at half its duration while the block lasts.

    :raises LeaseLost: and ends the block, when another owner has it, or when it could not
        be renewed and has nearly expired by the monotonic clock
    """
    useful = (duration - min(_SAFETY_MARGIN, duration / 4)).total_seconds()
    deadline = asyncio.timeout(useful)
    keeping = _LeaseRenewer(store, lease, duration, deadline, useful)
    try:
        async with deadline, run_in_background(keeping.renew_periodically(), name="lease"):
            yield
    except TimeoutError:
        if not deadline.expired():
            raise
        log.warning("lease_lost", conversation=lease.conversation_id, fence=lease.fence)
        kind = LeaseExpired if keeping.is_store_away else LeaseLost
        raise kind(lease.conversation_id, owner=lease.owner, fence=lease.fence) from None


class _LeaseRenewer:
    """The renewal of one lease."""

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
        self.is_store_away = False

    async def renew_periodically(self) -> None:
        """Renew at half the duration, sooner after a store failure, until the lease is lost."""
        loop, half = asyncio.get_running_loop(), self._duration.total_seconds() / 2
        while True:
            await asyncio.sleep(min(_RETRY_PAUSE, half / 4) if self.is_store_away else half)
            # Measured before the write: it may have waited, and the lease runs from when it was
            # made.
            asked = loop.time()
            waiting = loop.call_later(_RESPONSE_TIMEOUT, self._mark_store_away)
            try:
                await self._store.write(leases.renew_lease, self._lease, duration=self._duration)
            except LeaseLost:
                self.is_store_away = False
                # The block may be about to end: its last write has released the lease already.
                if not await self._is_released():
                    self._deadline.reschedule(loop.time())
                return
            except StoreError as error:
                self.is_store_away = True
                log.warning(
                    "lease_not_renewed", conversation=self._lease.conversation_id, error=str(error)
                )
            else:
                self.is_store_away = False
                self._deadline.reschedule(asked + self._useful)
            finally:
                waiting.cancel()

    async def _is_released(self) -> bool:
        with suppress(StoreError):
            return await self._store.read(leases.is_released, self._lease)
        return False

    def _mark_store_away(self) -> None:
        self.is_store_away = True
