"""Synchronous store on an SQLite file."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import apsw

from clew.clock import SystemClock
from clew.errors import StoreDamaged, StoreError, StoreUnusable
from clew.store.sqlite.driver import fetch_rows, new_cursor
from clew.store.sqlite.errors import translate_error
from clew.store.sqlite.file_identity import reject_missing_files
from clew.store.sqlite.filesystems import detect_filesystem
from clew.store.sqlite.liveness import SqliteLiveness
from clew.store.sqlite.opening import (
    connect,
    create_file,
    reject_foreign_database,
    reject_network_filesystem,
    reject_old_sqlite,
    set_application_id,
    sqlite_version,
)
from clew.store.sqlite.tx import JobContext, SqliteTx
from clew.store.sync_store import SyncStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clew.store.contract import Tx

P = ParamSpec("P")
T = TypeVar("T")

#: Virtual machine steps between two checks for Ctrl-C.
_PROGRESS_STEPS = 100_000


class SqliteSyncStore(SyncStore):
    """File that others may use as well, unless it was opened with ``open_exclusive``."""

    dialect = "sqlite"

    def __init__(self, path: Path, connection: apsw.Connection, owners: SqliteLiveness) -> None:
        """Take over ``connection``; use one of the functions below."""
        self.name = str(path)
        self._connection = connection
        self._cursor = new_cursor(connection)
        self._surroundings = JobContext(SystemClock(), owners)
        # Python handles signals only while it runs Python code, such as this handler.
        connection.set_progress_handler(lambda: False, _PROGRESS_STEPS)

    def read(self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run_transaction("BEGIN", "ROLLBACK", lambda t: job(t, *args, **kwargs))

    def write(self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run_transaction("BEGIN IMMEDIATE", "COMMIT", lambda t: job(t, *args, **kwargs))

    def close(self) -> None:
        self._connection.close()

    def finalize_file(self, *, stamp: int, journal: str = "delete") -> None:
        """
        Write the log back, so that after ``close`` the file alone is complete.

        :param stamp: the file's ``user_version``
        :param journal: the journal mode for the next process that opens it
        :raises StoreUnavailable: if another connection has the file open
        """
        try:
            fetch_rows(self._connection, f"PRAGMA user_version = {stamp}")
            fetch_rows(self._connection, "PRAGMA journal_mode = DELETE")
            fetch_rows(self._connection, f"PRAGMA journal_mode = {journal}")
        except apsw.Error as error:
            raise translate_error(error, self._connection) from error

    def _run_transaction(self, begin: str, end: str, job: Callable[[Tx], T]) -> T:
        try:
            self._cursor.execute(begin)
            result = job(SqliteTx(self._connection, self._cursor, self._surroundings))
            self._cursor.execute(end)
        except apsw.Error as error:
            ours = translate_error(error, self._connection)
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


def open_shared(path: Path, *, run_dir: Path) -> SqliteSyncStore:
    """
    Open a store that others may be using.

    :raises StoreUnusable: if it is not a store
    """
    owners = SqliteLiveness(run_dir)
    reject_network_filesystem(path, detect_filesystem(path))
    reject_missing_files(path, owners)
    return _open_sync_store(path, lambda: connect(path, reader=False), owners)


def open_read_only(path: Path) -> SqliteSyncStore:
    """
    Open a file for reading only: a backup, which may be in a read-only place.

    :raises StoreUnusable: if it is not one of our databases
    """
    return _open_sync_store(path, lambda: _connect_read_only(path), SqliteLiveness(path.parent))


def open_exclusive(path: Path) -> SqliteSyncStore:
    """
    Open a file that nobody else uses, creating it if needed: a store being built.

    Foreign keys are not enforced: rows may come in any order. It has a log until
    ``finalize_file``.
    """

    def open_connection() -> apsw.Connection:
        create_file(path)
        connection = connect(path, reader=False)
        fetch_rows(connection, "PRAGMA foreign_keys = OFF")
        fetch_rows(connection, "PRAGMA synchronous = NORMAL")
        fetch_rows(connection, "PRAGMA wal_autocheckpoint = 1000")
        fetch_rows(connection, "PRAGMA journal_mode = WAL")
        set_application_id(connection)
        return connection

    return _open_sync_store(path, open_connection, SqliteLiveness(path.parent))


def _connect_read_only(path: Path) -> apsw.Connection:
    # Without a log nobody is writing, so no lock is needed, which a read-only place or a
    # network would refuse.
    with path.open("rb") as file:
        alone = file.read(20)[18:20] == b"\1\1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"{path.resolve().as_uri()}?immutable={int(alone)}", flags=flags)
    connection.set_busy_timeout(2000)
    return connection


def _open_sync_store(
    path: Path, connected: Callable[[], apsw.Connection], owners: SqliteLiveness
) -> SqliteSyncStore:
    reject_old_sqlite(sqlite_version())
    try:
        connection = connected()
    except apsw.Error as error:
        raise _translate_open_error(path, error) from error
    try:
        reject_foreign_database(connection, path)
    except BaseException as error:
        connection.close()
        raise (
            _translate_open_error(path, error) if isinstance(error, apsw.Error) else error
        ) from error
    return SqliteSyncStore(path, connection, owners)


def _translate_open_error(path: Path, error: apsw.Error) -> StoreError:
    if isinstance(error, apsw.NotADBError):
        return StoreDamaged(f"{path} is not a database, or its beginning is damaged")
    if isinstance(error, (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError)):
        return StoreUnusable(f"{path} cannot be opened by this user: {error}")
    return translate_error(error)
