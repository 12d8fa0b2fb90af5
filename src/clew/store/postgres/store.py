"""The store on PostgreSQL."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from clew.errors import StoreUnavailable
from clew.store.contract import Store
from clew.store.postgres import attempts, opening
from clew.store.postgres.address import Address
from clew.store.postgres.attempts import Attempts
from clew.store.postgres.limits import Limits
from clew.store.postgres.link import Link
from clew.store.postgres.news import News
from clew.store.postgres.pool import Pool
from clew.store.postgres.presence import Presence
from clew.store.postgres.tx import DURABLE, Voided

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from clew.clock import Clock
    from clew.store.contract import Tx

T = TypeVar("T")
P = ParamSpec("P")


async def open_postgres(
    url: str, *, clock: Clock | None = None, limits: Limits | None = None
) -> PostgresStore:
    """
    Open the store at ``postgresql://user:password@host:port/database``.

    :param clock: replaces the database host's clock, for tests
    :raises StoreUnusable: it cannot be used; the text says why and what to do, without the password
    :raises StoreUnavailable: the server did not answer, or was not ready, for ``limits.patience``
    """
    store = PostgresStore(Address(url), clock, limits or Limits())
    try:
        await store.probe()
    except BaseException:
        await store.aclose()
        raise
    return store


class PostgresStore(Store):
    """
    Jobs run in worker threads, one connection each; a few write, a few read.

    A job runs again, unseen by its caller, after a serialization failure or a deadlock, and on a
    new connection when its own was lost, even in COMMIT: jobs take ids made by their caller, so the
    second run finds what the first one stored.
    """

    def __init__(self, address: Address, clock: Clock | None, limits: Limits) -> None:
        """Use ``open_postgres``."""
        self._address, self._clock, self._limits = address, clock, limits
        self._pids: set[int] = set()
        self._writers = Pool("clew-postgres-write", limits.writers, self._writer, limits)
        self._readers = Pool("clew-postgres-read", limits.readers, self._reader, limits)
        self._presence = Presence(address, limits)
        self._news = News(address, limits, self._pids)
        self._checking: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def write(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._write(self._limits, lambda tx: job(tx, *args, **kwargs))

    async def read(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        def work(link: Link, since: float) -> T:
            tries = Attempts(self._limits, since)
            return attempts.read(link, lambda tx: job(tx, *args, **kwargs), self._clock, tries)

        return await self._readers.run(work)

    def changes(self) -> AsyncIterator[frozenset[str] | None]:
        return self._news.listen()

    async def register(self, owner: str) -> None:
        await self._presence.register(owner)

    async def check(self) -> None:
        # Not more than one at a time: a server that hangs must not eat up the connections.
        if self._checking is None or self._checking.done():
            hasty = replace(self._limits, patience=0)
            self._checking = asyncio.create_task(self._write(hasty, _touch), name="postgres-check")
            self._checking.add_done_callback(_note)
        try:
            async with asyncio.timeout(self._limits.check):
                await asyncio.shield(self._checking)
        except TimeoutError:
            raise StoreUnavailable(
                f"PostgreSQL at {self._address.name} did not answer within {self._limits.check:g} s"
            ) from None

    async def aclose(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="postgres-close")
        # Closing goes on when the caller is cancelled.
        await asyncio.shield(self._closing)

    async def probe(self) -> None:
        """Ask the server whether it will do; the connection stays for the first job."""

        def work(link: Link, since: float) -> None:
            tries = Attempts(self._limits, since)
            while True:
                try:
                    return opening.probe(link, self._address)
                except Voided as void:
                    tries.consider(link, void)

        await self._writers.run(work)

    async def _write(self, limits: Limits, job: Callable[[Tx], T]) -> T:
        def work(link: Link, since: float) -> T:
            tries = Attempts(limits, since)
            try:
                result, topics = attempts.write(link, job, self._clock, tries)
            except BaseException:
                if tries.uncertain:
                    # It may have been committed, and nobody hears our own backends.
                    self._news.tell(None)
                raise
            if topics is None or topics:
                self._news.tell(topics, here=True)
            return result

        return await self._writers.run(work)

    async def _close(self) -> None:
        await self._writers.aclose()
        await self._readers.aclose()
        await self._presence.aclose()
        await self._news.aclose()

    def _writer(self) -> Link:
        return self._made(self._limits.pause)

    def _reader(self) -> Link:
        return self._made(self._limits.pause_reading)

    def _made(self, pause: float) -> Link:
        return Link(self._address, self._pids, pause=pause, in_doubt=self._presence.in_doubt)


def _touch(tx: Tx) -> None:
    tx.one(DURABLE)


def _note(task: asyncio.Task[None]) -> None:
    # Nobody may be waiting any more: its error is no surprise.
    if not task.cancelled():
        task.exception()
