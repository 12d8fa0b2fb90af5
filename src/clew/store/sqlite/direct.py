"""One connection to an SQLite file, in one thread."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import apsw

from clew.clock import SystemClock
from clew.errors import StoreDamaged, StoreError, StoreUnusable
from clew.store.direct import Direct
from clew.store.sqlite.driver import cursor_of, rows_of
from clew.store.sqlite.failures import translated
from clew.store.sqlite.filesystems import filesystem_of
from clew.store.sqlite.handle import SqliteTx, Surroundings
from clew.store.sqlite.names import refuse_torn
from clew.store.sqlite.opening import (
    connect,
    make_file,
    refuse_foreign,
    refuse_network,
    refuse_old_sqlite,
    sign,
    sqlite_version,
)
from clew.store.sqlite.owners import Owners

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clew.store.contract import Tx

P = ParamSpec("P")
T = TypeVar("T")

#: Steps of SQLite's machine between two looks at whether Ctrl-C was pressed.
_STEPS = 100_000


class SqliteDirect(Direct):
    """A file that others may use as well, or, with ``open_alone``, nobody else."""

    dialect = "sqlite"

    def __init__(self, path: Path, connection: apsw.Connection, owners: Owners) -> None:
        """Take over ``connection``; use one of the functions below."""
        self.name = str(path)
        self._connection = connection
        self._cursor = cursor_of(connection)
        self._surroundings = Surroundings(SystemClock(), owners)
        # Python sees a signal only in Python code, which this is.
        connection.set_progress_handler(lambda: False, _STEPS)

    def read(self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run("BEGIN", "ROLLBACK", lambda t: job(t, *args, **kwargs))

    def write(self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run("BEGIN IMMEDIATE", "COMMIT", lambda t: job(t, *args, **kwargs))

    def close(self) -> None:
        self._connection.close()

    def settle(self, *, stamp: int, journal: str = "delete") -> None:
        """
        Write the log back: once this is closed, the file is all there is.

        :param stamp: the file's ``user_version``
        :param journal: the mode for whoever opens it next
        :raises StoreUnavailable: if another connection has the file open
        """
        try:
            rows_of(self._connection, f"PRAGMA user_version = {stamp}")
            rows_of(self._connection, "PRAGMA journal_mode = DELETE")
            rows_of(self._connection, f"PRAGMA journal_mode = {journal}")
        except apsw.Error as error:
            raise translated(error, self._connection) from error

    def _run(self, begin: str, end: str, job: Callable[[Tx], T]) -> T:
        try:
            self._cursor.execute(begin)
            result = job(SqliteTx(self._connection, self._cursor, self._surroundings))
            self._cursor.execute(end)
        except apsw.Error as error:
            ours = translated(error, self._connection)
            self._roll_back()
            raise ours from error
        except BaseException:
            self._roll_back()
            raise
        return result

    def _roll_back(self) -> None:
        with suppress(apsw.Error):
            if self._connection.in_transaction:
                self._cursor.execute("ROLLBACK")


def open_used(path: Path, *, run_dir: Path) -> SqliteDirect:
    """
    Open a store that others may be using.

    :raises StoreUnusable: if it is none
    """
    owners = Owners(run_dir)
    refuse_network(path, filesystem_of(path))
    refuse_torn(path, owners)
    return _opened(path, lambda: connect(path, reader=False), owners)


def open_kept(path: Path) -> SqliteDirect:
    """
    Open a file that is only read: a backup, which may lie where nobody can write.

    :raises StoreUnusable: if it is no database of ours
    """
    return _opened(path, lambda: _connect_to_kept(path), Owners(path.parent))


def open_alone(path: Path) -> SqliteDirect:
    """
    Open a file that nobody else uses, made if it is not there: a store that is being built.

    Foreign keys are not enforced: rows may come in any order. Until ``settle`` it has a log.
    """

    def connected() -> apsw.Connection:
        make_file(path)
        connection = connect(path, reader=False)
        rows_of(connection, "PRAGMA foreign_keys = OFF")
        rows_of(connection, "PRAGMA synchronous = NORMAL")
        rows_of(connection, "PRAGMA wal_autocheckpoint = 1000")
        rows_of(connection, "PRAGMA journal_mode = WAL")
        sign(connection)
        return connection

    return _opened(path, connected, Owners(path.parent))


def _connect_to_kept(path: Path) -> apsw.Connection:
    # Without a log nobody is writing, and no lock has to be taken, which a read-only place or a
    # network would refuse.
    with path.open("rb") as file:
        alone = file.read(20)[18:20] == b"\1\1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"{path.resolve().as_uri()}?immutable={int(alone)}", flags=flags)
    connection.set_busy_timeout(2000)
    return connection


def _opened(path: Path, connected: Callable[[], apsw.Connection], owners: Owners) -> SqliteDirect:
    refuse_old_sqlite(sqlite_version())
    try:
        connection = connected()
    except apsw.Error as error:
        raise _unusable(path, error) from error
    try:
        refuse_foreign(connection, path)
    except BaseException as error:
        connection.close()
        raise _unusable(path, error) if isinstance(error, apsw.Error) else error from error
    return SqliteDirect(path, connection, owners)


def _unusable(path: Path, error: apsw.Error) -> StoreError:
    if isinstance(error, apsw.NotADBError):
        return StoreDamaged(f"{path} is no database, or its beginning is damaged")
    if isinstance(error, (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError)):
        return StoreUnusable(f"{path} cannot be opened by this user: {error}")
    return translated(error)
