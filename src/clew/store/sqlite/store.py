"""The store on one SQLite file."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import structlog

from clew.clock import SystemClock
from clew.errors import StoreDamaged, StoreFull, StoreUnavailable, StoreUnusable
from clew.store.contract import Store, Tx
from clew.store.sqlite.changes import Changes
from clew.store.sqlite.handle import Surroundings
from clew.store.sqlite.jobs import Job
from clew.store.sqlite.names import refuse_torn
from clew.store.sqlite.opening import open_writer, prepare
from clew.store.sqlite.owners import Owners
from clew.store.sqlite.readers import Readers
from clew.store.sqlite.writer import Writer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    import apsw

    from clew.clock import Clock

T = TypeVar("T")
P = ParamSpec("P")

_log = structlog.get_logger(__name__)

_READERS = 4
_RESCUE = (
    "stop everything that uses it, copy its files to another disk and restore a backup; "
    "clew fsck tells what is damaged"
)
#: With less room than this a write may fail at any moment.
_ROOM = 1024 * 1024


async def open_sqlite(path: Path, *, run_dir: Path, clock: Clock | None = None) -> SqliteStore:
    """
    Open the store in the file ``path``, which is made if it is not there.

    :param run_dir: where the owners of this file prove that they live; the same for all processes
    :raises StoreUnusable: if it cannot be opened; nothing was written, and the text says what to do
    :raises StoreUnavailable: if others kept it locked
    """
    return await asyncio.to_thread(_open, path, run_dir, clock or SystemClock())


def _open(path: Path, run_dir: Path, clock: Clock) -> SqliteStore:
    path, run_dir = path.resolve(), run_dir.resolve()  # others may change the working directory
    owners = Owners(run_dir)
    refuse_torn(path, owners)
    prepare(path, run_dir=run_dir)
    return SqliteStore(path, _writer(path), owners, clock)


def _writer(path: Path) -> apsw.Connection:
    """A connection to the file that is there now, not to one that a restore just replaced."""
    while True:
        prior = path.stat().st_ino
        try:
            connection = open_writer(path)
        except StoreUnusable:  # SQLite may notice as well that the file is another one
            if path.stat().st_ino == prior:
                raise
            continue
        # From here on its lock keeps any restore away.
        if path.stat().st_ino == prior:
            return connection
        connection.close()


class SqliteStore(Store):
    """
    One writer thread with group commit, a few reader threads.

    A call that is cancelled before its job has begun does not run; one that has begun may commit.
    """

    def __init__(
        self, path: Path, connection: apsw.Connection, owners: Owners, clock: Clock
    ) -> None:
        """Take over ``connection``, open for writing; use ``open_sqlite``."""
        self._path = path
        self._owners = owners
        #: What is told to whoever wants to write, once a page turned out to be damaged.
        self._damage: str | None = None
        surroundings = Surroundings(clock, owners)
        self._changes = Changes(on_listen=self._nudge)
        self._readers = Readers(path, surroundings, most=_READERS)
        self._writer = Writer(path, connection, surroundings, self._changes)
        self._writer.start()

    async def write(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if self._damage is not None:
            raise StoreDamaged(self._damage)
        waiting = Job(job, args, kwargs)
        self._writer.submit(waiting)
        return await self._watched(waiting.future)

    async def read(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        waiting = Job(job, args, kwargs)
        self._readers.submit(waiting)
        return await self._watched(waiting.future)

    async def _watched(self, outcome: asyncio.Future[T]) -> T:
        """From the first damaged page on nothing is written: it could make things worse."""
        try:
            return await outcome
        except StoreDamaged as error:
            if self._damage is None:
                self._damage = f"{error}; nothing more is written to it: {_RESCUE}"
                _log.error("store_damaged", file=str(self._path), error=self._damage)
            raise

    def changes(self) -> AsyncIterator[frozenset[str] | None]:
        return self._changes.listen()

    async def register(self, owner: str) -> None:
        if not self._owners.holds(owner):
            await asyncio.to_thread(self._owners.register, owner)

    async def check(self) -> None:
        await asyncio.to_thread(self._check_file)
        await self.write(_touch)  # takes the lock, and commits without a page
        await self.read(_touch)

    async def aclose(self) -> None:
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        # The readers first: the last connection writes the log back.
        self._readers.close()
        self._writer.close()
        self._owners.release()

    def _nudge(self) -> None:
        self._writer.nudge()

    def _check_file(self) -> None:
        try:
            space = os.statvfs(self._path)
        except OSError as error:
            raise StoreUnavailable(f"{self._path} is gone: {error.strerror}") from error
        if space.f_bavail * space.f_frsize < _ROOM:
            raise StoreFull(f"there is no space left beside {self._path}")


def _touch(t: Tx) -> None:
    t.one("SELECT count(*) FROM sqlite_schema")
