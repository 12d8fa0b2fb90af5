"""Store on one SQLite file."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import structlog

from clew.clock import SystemClock
from clew.errors import StoreDamaged, StoreFull, StoreUnavailable, StoreUnusable
from clew.store.contract import Store, Tx
from clew.store.sqlite.changes import SqliteChangeFeed
from clew.store.sqlite.file_identity import reject_missing_files
from clew.store.sqlite.jobs import Job
from clew.store.sqlite.liveness import SqliteLiveness
from clew.store.sqlite.opening import open_writer, prepare_file
from clew.store.sqlite.reader_pool import ReaderPool
from clew.store.sqlite.tx import JobContext
from clew.store.sqlite.writer import Writer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    import apsw

    from clew.clock import Clock

T = TypeVar("T")
P = ParamSpec("P")

_log = structlog.get_logger(__name__)

_MAX_READERS = 4
_RECOVERY_ADVICE = (
    "stop everything that uses it, copy its files to another disk and restore a backup; clew "
    "fsck shows what is damaged"
)
#: With less free space than this a write may fail at any moment.
_MIN_FREE_BYTES = 1024 * 1024


async def open_sqlite(path: Path, *, run_dir: Path, clock: Clock | None = None) -> SqliteStore:
    """
    Open the store in the file ``path``, creating it if needed.

    :param run_dir: folder with the lock files of this store's owners; the same for all
        processes
    :raises StoreUnusable: if it cannot be opened; nothing was written, and the message says
        what to do
    :raises StoreUnavailable: if other processes kept it locked
    """
    return await asyncio.to_thread(_open_store, path, run_dir, clock or SystemClock())


def _open_store(path: Path, run_dir: Path, clock: Clock) -> SqliteStore:
    path, run_dir = path.resolve(), run_dir.resolve()  # others may change the working directory
    owners = SqliteLiveness(run_dir)
    reject_missing_files(path, owners)
    prepare_file(path, run_dir=run_dir)
    return SqliteStore(path, _open_current_writer(path), owners, clock)


def _open_current_writer(path: Path) -> apsw.Connection:
    """Connect to the file that is there now, not to one that a restore just replaced."""
    while True:
        prior = path.stat().st_ino
        try:
            connection = open_writer(path)
        except StoreUnusable:  # SQLite may also notice that the file was replaced
            if path.stat().st_ino == prior:
                raise
            continue
        # From here on its lock prevents any restore.
        if path.stat().st_ino == prior:
            return connection
        connection.close()


class SqliteStore(Store):
    """
    Store with one writer thread that groups commits, and a few reader threads.

    A call that is cancelled before its job has started does not run; one that has started
    may commit.
    """

    def __init__(
        self, path: Path, connection: apsw.Connection, owners: SqliteLiveness, clock: Clock
    ) -> None:
        """Take over ``connection``, open for writing; use ``open_sqlite``."""
        self._path = path
        self._liveness = owners
        #: Error message for every write once a damaged page was found.
        self._damage: str | None = None
        surroundings = JobContext(clock, owners)
        self._change_feed = SqliteChangeFeed(on_listen=self._wake_writer)
        self._readers = ReaderPool(path, surroundings, most=_MAX_READERS)
        self._writer = Writer(path, connection, surroundings, self._change_feed)
        self._writer.start()

    async def write(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if self._damage is not None:
            raise StoreDamaged(self._damage)
        waiting = Job(job, args, kwargs)
        self._writer.submit(waiting)
        return await self._await_outcome(waiting.future)

    async def read(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        waiting = Job(job, args, kwargs)
        self._readers.submit(waiting)
        return await self._await_outcome(waiting.future)

    async def _await_outcome(self, outcome: asyncio.Future[T]) -> T:
        """Await a job; after the first damaged page reject all writes, which could add damage."""
        try:
            return await outcome
        except StoreDamaged as error:
            if self._damage is None:
                self._damage = f"{error}; nothing more is written to it: {_RECOVERY_ADVICE}"
                _log.error("store_damaged", file=str(self._path), error=self._damage)
            raise

    def watch_changes(self) -> AsyncIterator[frozenset[str] | None]:
        return self._change_feed.listen()

    async def register_owner(self, owner: str) -> None:
        if not self._liveness.holds_lock(owner):
            await asyncio.to_thread(self._liveness.register_owner, owner)

    async def check_available(self) -> None:
        await asyncio.to_thread(self._check_disk)
        await self.write(_ping_database)  # takes the lock, and commits without a page
        await self.read(_ping_database)

    async def aclose(self) -> None:
        await asyncio.to_thread(self._close_all)

    def _close_all(self) -> None:
        # The readers first: the last connection writes the log back.
        self._readers.close()
        self._writer.close()
        self._liveness.release_all()

    def _wake_writer(self) -> None:
        self._writer.wake()

    def _check_disk(self) -> None:
        try:
            space = os.statvfs(self._path)
        except OSError as error:
            raise StoreUnavailable(f"{self._path} is gone: {error.strerror}") from error
        if space.f_bavail * space.f_frsize < _MIN_FREE_BYTES:
            raise StoreFull(f"there is no space left beside {self._path}")


def _ping_database(t: Tx) -> None:
    t.fetch_one("SELECT count(*) FROM sqlite_schema")
