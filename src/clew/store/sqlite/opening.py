"""Connections to the file, and every reason not to open it."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import TYPE_CHECKING

import apsw

from clew.errors import StoreUnusable
from clew.store.sqlite.driver import rows_of
from clew.store.sqlite.failures import translated
from clew.store.sqlite.filesystems import Locality, filesystem_of, locality_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Older ones can corrupt a WAL file that several connections use.
OLDEST_SQLITE = (3, 51, 3)
#: How long anybody waits for a lock that another process holds, in seconds.
PATIENCE = 10.0
#: The write-ahead log is cut to this size, in bytes.
JOURNAL_LIMIT = 64 * 1024 * 1024

#: The application id in the header of our files: "Clew".
SIGNATURE = 0x436C6577

_creating = threading.Lock()
_NO_DATABASE = "{} is not a database: move it away, or name another file"


def prepare(
    path: Path, *, run_dir: Path, filesystem_of: Callable[[Path], str] = filesystem_of
) -> None:
    """
    See to it that ``path`` is a file that a store can use; create it if it is not there.

    :raises StoreUnusable: if it cannot be one; then nothing was written
    """
    prepare_place(path, run_dir=run_dir, filesystem_of=filesystem_of)
    make_file(path)


def prepare_place(
    path: Path, *, run_dir: Path, filesystem_of: Callable[[Path], str] = filesystem_of
) -> None:
    """
    See to it that a store can be at ``path``, if there is a file or not.

    :raises StoreUnusable: if it cannot
    """
    refuse_old_sqlite(sqlite_version())
    for place in (path, run_dir):
        refuse_network(place, filesystem_of(place))
    if path.exists() and not path.is_file():
        raise StoreUnusable(f"{path} is not a file: name a file for the store")
    for place in (path, path.parent, run_dir):
        _refuse_read_only(place)
    for folder in (path.parent, run_dir):
        _make_private(folder)


def open_writer(
    path: Path, *, filesystem_of: Callable[[Path], str] = filesystem_of
) -> apsw.Connection:
    """
    Open the connection that writes to a prepared file.

    A new file is in WAL mode where its disk is a local one. Elsewhere, and where somebody has set
    it by hand, it has a rollback journal: readers and the writer wait for each other.

    :raises StoreUnusable: if SQLite refuses the file
    """
    connection: apsw.Connection | None = None
    try:
        connection = connect(path, reader=False)
        refuse_foreign(connection, path)
        local = locality_of(filesystem_of(path)) is Locality.LOCAL
        if rows_of(connection, "PRAGMA page_count") == [(0,)]:
            # So that free pages can be given back in slices; only an empty file takes this.
            rows_of(connection, "PRAGMA auto_vacuum = INCREMENTAL")
            _set_journal(connection, path, "wal" if local else "delete")
        elif not local:
            _set_journal(connection, path, "delete")
        elif _is_copy(connection):
            _set_journal(connection, path, "wal")
        sign(connection)
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, apsw.NotADBError):
            raise StoreUnusable(_NO_DATABASE.format(path)) from error
        if isinstance(error, (apsw.CantOpenError, apsw.ReadOnlyError)):
            raise StoreUnusable(f"{path} cannot be opened for writing: {error}") from error
        if isinstance(error, apsw.Error):
            raise translated(error) from error
        raise
    return connection


def connect(path: Path, *, reader: bool) -> apsw.Connection:
    """A connection as the store wants it; a reader's cannot write."""
    connection = apsw.Connection(
        str(path), flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=512
    )
    connection.set_busy_timeout(int(PATIENCE * 1000))
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    # One plan per statement. Otherwise SQLite, as apsw builds it, makes a new one for other values:
    # a join of rows by their keys takes four times as long.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    if reader:
        # A writer, if there is one, ends after its readers, and knows whether that may be done.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    for pragma in _pragmas(reader=reader):
        rows_of(connection, f"PRAGMA {pragma}")
    return connection


def sqlite_version() -> str:
    """Of the SQLite that apsw carries."""
    return apsw.sqlite_lib_version()


def refuse_old_sqlite(version: str) -> None:
    """:raises StoreUnusable: for an SQLite that can corrupt the store"""
    if tuple(int(part) for part in version.split(".")) < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise StoreUnusable(f"SQLite {version} is too old, {oldest} is needed: upgrade apsw")


def _pragmas(*, reader: bool) -> list[str]:
    pragmas = [
        "synchronous = FULL",
        "foreign_keys = ON",
        "recursive_triggers = OFF",
        "temp_store = MEMORY",
        f"journal_size_limit = {JOURNAL_LIMIT}",
        # The writer thread decides when: after the callers have their answers.
        "wal_autocheckpoint = 0",
    ]
    if sys.platform == "darwin":
        pragmas += ["fullfsync = ON", "checkpoint_fullfsync = ON"]
    # Small, since a process has several connections and the system caches the file for all of them.
    pragmas += ["query_only = ON", "cache_size = -500"] if reader else ["cache_size = -2000"]
    return pragmas


def refuse_network(path: Path, kind: str) -> None:
    """:raises StoreUnusable: for a path on a network file system of this kind"""
    if locality_of(kind) is Locality.NETWORK:
        raise StoreUnusable(
            f"{path} is on a network file system ({kind}), where SQLite can lose data: "
            "put the store on a local disk, or use PostgreSQL"
        )


def _make_private(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnusable(f"the folder {folder} cannot be made: {error.strerror}") from error


def make_file(path: Path) -> None:
    """See to it that there is a file, which only its owner may read."""
    # By us, since the log and the shared memory take over the mode of the file. Never touched when
    # it is there: closing any descriptor of it would drop the POSIX locks that SQLite holds on it
    # for this whole process. The same danger keeps other threads out until ours is closed.
    with _creating, contextlib.suppress(FileExistsError):
        if not path.exists():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _refuse_read_only(place: Path) -> None:
    if place.exists() and not os.access(place, os.W_OK):
        raise StoreUnusable(
            f"{place} cannot be written by this user: change its owner or mode, "
            "or name another place for the store"
        )


def refuse_foreign(connection: apsw.Connection, path: Path) -> None:
    """:raises StoreUnusable: if the file has tables that are not Clew's; writes nothing"""
    # Before the first write: entering WAL mode changes the file. The tables first: another process
    # that makes the store now signs it before it makes any.
    tables = rows_of(connection, "SELECT name FROM sqlite_schema LIMIT 1")
    ((signature,),) = rows_of(connection, "PRAGMA application_id")
    if signature != SIGNATURE and (signature or tables):
        raise StoreUnusable(
            f"the database {path} belongs to another program: "
            "give Clew a file of its own; nothing was changed"
        )


def sign(connection: apsw.Connection) -> None:
    """Say in the header that the file is ours."""
    if rows_of(connection, "PRAGMA application_id") != [(SIGNATURE,)]:
        rows_of(connection, f"PRAGMA application_id = {SIGNATURE}")


def _is_copy(connection: apsw.Connection) -> bool:
    """Tell a backup, which nobody has opened as a store yet, by its stamp; remove that."""
    if rows_of(connection, "PRAGMA user_version") == [(0,)]:
        return False
    rows_of(connection, "PRAGMA user_version = 0")
    return True


def _set_journal(connection: apsw.Connection, path: Path, wanted: str) -> None:
    # Two that change it at once get "busy" without the usual wait, so we wait here.
    until = time.monotonic() + PATIENCE
    while True:
        try:
            ((mode,),) = rows_of(connection, f"PRAGMA journal_mode = {wanted}")
            break
        except apsw.BusyError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
    if mode != wanted:
        raise StoreUnusable(
            f"{path} refuses the {wanted.upper()} mode (it stays in {mode!r}): put the store on "
            "a local disk that can map shared memory"
        )
