"""Store on PostgreSQL."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from clew.errors import StoreUnavailable
from clew.record import replace
from clew.store.contract import Store
from clew.store.postgres import opening, retry
from clew.store.postgres.changes import PostgresChangeFeed
from clew.store.postgres.dsn import Dsn
from clew.store.postgres.limits import Limits
from clew.store.postgres.liveness import PostgresLiveness
from clew.store.postgres.pool import WorkerPool
from clew.store.postgres.retry import RetryState
from clew.store.postgres.tx import FORCE_DURABLE, TransactionFailed
from clew.store.postgres.worker_connection import WorkerConnection

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
    :raises StoreUnusable: it cannot be used; the message, without the password, says why
        and what to do
    :raises StoreUnavailable: the server did not respond for ``limits.retry_timeout``
    """
    store = PostgresStore(Dsn(url), clock, limits or Limits())
    try:
        await store.probe_server()
    except BaseException:
        await store.aclose()
        raise
    return store


class PostgresStore(Store):
    """
    Store whose jobs run in worker threads, one connection each, writers and readers apart.

    A job runs again, unnoticed by its caller, after a serialization failure or a deadlock,
    and on a new connection when its own was lost, even in COMMIT: jobs take ids made by
    their caller, so the second run finds what the first one stored.
    """

    def __init__(self, address: Dsn, clock: Clock | None, limits: Limits) -> None:
        """Store the settings; use ``open_postgres``."""
        self._address, self._clock, self._limits = address, clock, limits
        self._pids: set[int] = set()
        self._writers = WorkerPool("clew-postgres-write", limits.writers, self._make_writer, limits)
        self._readers = WorkerPool("clew-postgres-read", limits.readers, self._make_reader, limits)
        self._liveness = PostgresLiveness(address, limits)
        self._change_feed = PostgresChangeFeed(address, limits, self._pids)
        self._checking: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def write(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._run_write(self._limits, lambda tx: job(tx, *args, **kwargs))

    async def read(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        def run_job(link: WorkerConnection, since: float) -> T:
            tries = RetryState(self._limits, since)
            return retry.run_read(link, lambda tx: job(tx, *args, **kwargs), self._clock, tries)

        return await self._readers.run(run_job)

    def watch_changes(self) -> AsyncIterator[frozenset[str] | None]:
        return self._change_feed.listen()

    async def register_owner(self, owner: str) -> None:
        await self._liveness.register_owner(owner)

    async def check_available(self) -> None:
        # One at a time: a hanging server must not use up the connections.
        if self._checking is None or self._checking.done():
            hasty = replace(self._limits, retry_timeout=0)
            self._checking = asyncio.create_task(
                self._run_write(hasty, _ping_database), name="postgres-check"
            )
            self._checking.add_done_callback(_consume_error)
        try:
            async with asyncio.timeout(self._limits.check_timeout):
                await asyncio.shield(self._checking)
        except TimeoutError:
            raise StoreUnavailable(
                f"PostgreSQL at {self._address.name} did not answer within "
                f"{self._limits.check_timeout:g} s"
            ) from None

    async def aclose(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close_all(), name="postgres-close")
        # Closing continues when the caller is cancelled.
        await asyncio.shield(self._closing)

    async def probe_server(self) -> None:
        """Check that the server is suitable; the connection stays for the first job."""

        def run_probe(link: WorkerConnection, since: float) -> None:
            tries = RetryState(self._limits, since)
            while True:
                try:
                    return opening.probe_server(link, self._address)
                except TransactionFailed as void:
                    tries.retry_or_raise(link, void)

        await self._writers.run(run_probe)

    async def _run_write(self, limits: Limits, job: Callable[[Tx], T]) -> T:
        def run_job(link: WorkerConnection, since: float) -> T:
            tries = RetryState(limits, since)
            try:
                result, topics = retry.run_write(link, job, self._clock, tries)
            except BaseException:
                if tries.uncertain:
                    # It may be committed, and notifications from our own backends are dropped.
                    self._change_feed.publish(None)
                raise
            if topics is None or topics:
                self._change_feed.publish(topics, here=True)
            return result

        return await self._writers.run(run_job)

    async def _close_all(self) -> None:
        await self._writers.aclose()
        await self._readers.aclose()
        await self._liveness.aclose()
        await self._change_feed.aclose()

    def _make_writer(self) -> WorkerConnection:
        return self._make_connection(self._limits.idle_transaction_timeout)

    def _make_reader(self) -> WorkerConnection:
        return self._make_connection(self._limits.idle_read_timeout)

    def _make_connection(self, pause: float) -> WorkerConnection:
        return WorkerConnection(
            self._address, self._pids, pause=pause, in_doubt=self._liveness.is_uncertain
        )


def _ping_database(tx: Tx) -> None:
    tx.fetch_one(FORCE_DURABLE)


def _consume_error(task: asyncio.Task[None]) -> None:
    # Its caller may be gone: mark its error as retrieved.
    if not task.cancelled():
        task.exception()
