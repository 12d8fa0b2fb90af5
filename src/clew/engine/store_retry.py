"""Retries while the store is unavailable: a server restart or a failover."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import structlog

from clew.background import shield_until_done
from clew.backoff import add_jitter
from clew.errors import SearchNotReady, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from clew.store.contract import Store, Tx

T = TypeVar("T")
P = ParamSpec("P")

log = structlog.get_logger(__name__)

#: Seconds of waiting for a store where no caller cancels.
RETRY_TIMEOUT = 60.0
#: Seconds between two attempts: the first pause is doubled up to the maximum.
_FIRST_PAUSE, _MAX_PAUSE = 0.1, 2.0


class RetryingStore:
    """
    A store whose jobs wait until it is available, unless the caller is cancelled.

    Only for callers that are cancelled from outside: the work of a turn ends with its
    lease.
    """

    def __init__(self, store: Store) -> None:
        #: The store itself, without retries.
        self.once = store

    async def write(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await retry_while_unavailable(lambda: self.once.write(job, *args, **kwargs))

    async def read(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await retry_while_unavailable(lambda: self.once.read(job, *args, **kwargs))


async def retry_shielded(write: Callable[[], Awaitable[T]]) -> T:
    """Retry as ``retry_while_unavailable``; a cancellation waits for a running attempt."""
    return await retry_while_unavailable(lambda: shield_until_done(write()))


async def retry_while_unavailable(
    work: Callable[[], Awaitable[T]], *, longest: float | None = None
) -> T:
    """
    Run a store operation, and retry it at growing intervals while the store is unavailable.

    Jobs carry ids made by their callers, so one with an unknown outcome may run again.

    :param longest: seconds after which to give up; without it never
    :raises StoreUnavailable: after that time
    """
    loop = asyncio.get_running_loop()
    began, pause, told = loop.time(), _FIRST_PAUSE, False
    while True:
        try:
            return await work()
        except SearchNotReady:
            raise
        except StoreUnavailable as error:
            if longest is not None and loop.time() - began + pause > longest:
                raise
            if not told:
                log.warning("store_waited_for", error=str(error))
                told = True
        await asyncio.sleep(add_jitter(pause))
        pause = min(2 * pause, _MAX_PAUSE)
