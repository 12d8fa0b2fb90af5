"""Waiting for a store that is away for a while: a server restarts, a stand-by takes over."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import structlog

from clew.engine.uncancelled import uncancelled
from clew.errors import SearchNotReady, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from clew.store.contract import Store, Tx

T = TypeVar("T")
P = ParamSpec("P")

log = structlog.get_logger(__name__)

#: Seconds for which a store is waited for where nobody cancels.
PATIENCE = 60.0
#: Seconds between two tries: doubled up to the longest.
_FIRST, _LONGEST = 0.1, 2.0


class Lasting:
    """
    A store whose jobs wait until it can be used, for as long as their caller is not cancelled.

    Only for callers that somebody cancels: what a turn does ends with its lease.
    """

    def __init__(self, store: Store) -> None:
        #: Tries once.
        self.bare = store

    async def write(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await patiently(lambda: self.bare.write(job, *args, **kwargs))

    async def read(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await patiently(lambda: self.bare.read(job, *args, **kwargs))


async def to_its_end(write: Callable[[], Awaitable[T]]) -> T:
    """As ``patiently``; each try is waited for also by a caller who is cancelled, no pause is."""
    return await patiently(lambda: uncancelled(write()))


async def patiently(work: Callable[[], Awaitable[T]], *, longest: float | None = None) -> T:
    """
    Do something with the store; while that is away, again and again, at growing distances.

    Jobs carry ids made by their callers, so one whose outcome is unknown may be done again.

    :param longest: seconds after which it is given up; for ever without
    :raises StoreUnavailable: then
    """
    loop = asyncio.get_running_loop()
    began, pause, told = loop.time(), _FIRST, False
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
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, _LONGEST)
