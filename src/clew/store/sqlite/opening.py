"""Connections to the file, and every reason to reject it."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import TYPE_CHECKING

import apsw

from clew.errors import StoreUnusable
from clew.store.file_header import APPLICATION_ID
from clew.store.sqlite.driver import fetch_rows
from clew.store.sqlite.errors import translate_error
from clew.store.sqlite.filesystems import Locality, classify_filesystem, detect_filesystem

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Older versions can corrupt a WAL file that several connections use.
MIN_SQLITE_VERSION = (3, 51, 3)
#: Seconds to wait for a lock that another process holds.
LOCK_TIMEOUT = 10.0
#: The write-ahead log is cut to this size, in bytes.
JOURNAL_LIMIT = 64 * 1024 * 1024

_creating = threading.Lock()
_NO_DATABASE = "{} is not a database: move it away, or name another file"


def prepare_file(
    path: Path, *, run_dir: Path, filesystem_of: Callable[[Path], str] = detect_filesystem
) -> None:
    """
    Make sure that ``path`` is a file that a store can use; create it if needed.

    :raises StoreUnusable: if it cannot be one; then nothing was written
    """
    prepare_location(path, run_dir=run_dir, filesystem_of=filesystem_of)
    create_file(path)


def prepare_location(
    path: Path, *, run_dir: Path, filesystem_of: Callable[[Path], str] = detect_filesystem
) -> None:
    """
    Make sure that a store can be at ``path``, whether or not the file exists.

    :raises StoreUnusable: if it cannot
    """
    reject_old_sqlite(sqlite_version())
    for place in (path, run_dir):
        reject_network_filesystem(place, filesystem_of(place))
    if path.exists() and not path.is_file():
        raise StoreUnusable(f"{path} is not a file: name a file for the store")
    for place in (path, path.parent, run_dir):
        _reject_read_only(place)
    for folder in (path.parent, run_dir):
        _create_private_folder(folder)


def open_writer(
    path: Path, *, filesystem_of: Callable[[Path], str] = detect_filesystem
) -> apsw.Connection:
    """
    Open the write connection to a prepared file.

    A new file gets WAL mode on a local disk. On other file systems, and where the mode was
    set by hand, it has a rollback journal: readers and the writer wait for each other.

    :raises StoreUnusable: if SQLite rejects the file
    """
    connection: apsw.Connection | None = None
    try:
        connection = connect(path, reader=False)
        reject_foreign_database(connection, path)
        local = classify_filesystem(filesystem_of(path)) is Locality.LOCAL
        if fetch_rows(connection, "PRAGMA page_count") == [(0,)]:
            # Allows free pages to be released in batches; can be set only on an empty file.
            fetch_rows(connection, "PRAGMA auto_vacuum = INCREMENTAL")
            _set_journal_mode(connection, path, "wal" if local else "delete")
        elif not local:
            _set_journal_mode(connection, path, "delete")
        elif _clear_backup_stamp(connection):
            _set_journal_mode(connection, path, "wal")
        set_application_id(connection)
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, apsw.NotADBError):
            raise StoreUnusable(_NO_DATABASE.format(path)) from error
        if isinstance(error, (apsw.CantOpenError, apsw.ReadOnlyError)):
            raise StoreUnusable(f"{path} cannot be opened for writing: {error}") from error
        if isinstance(error, apsw.Error):
            raise translate_error(error) from error
        raise
    return connection


def connect(path: Path, *, reader: bool) -> apsw.Connection:
    """Open a connection with the store's settings; a reader's cannot write."""
    connection = apsw.Connection(
        str(path), flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=512
    )
    connection.set_busy_timeout(int(LOCK_TIMEOUT * 1000))
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    # One plan per statement. Otherwise SQLite, as apsw builds it, plans again for other values:
    # a join of rows by their keys takes four times as long.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    if reader:
        # A writer, if there is one, closes after its readers, and knows whether to checkpoint.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    for pragma in _build_pragmas(reader=reader):
        fetch_rows(connection, f"PRAGMA {pragma}")
    return connection


def sqlite_version() -> str:
    """Return the version of SQLite that apsw carries."""
    return apsw.sqlite_lib_version()


def reject_old_sqlite(version: str) -> None:
    """Raise ``StoreUnusable`` for a version of SQLite that can corrupt the store."""
    if tuple(int(part) for part in version.split(".")) < MIN_SQLITE_VERSION:
        oldest = ".".join(map(str, MIN_SQLITE_VERSION))
        raise StoreUnusable(f"SQLite {version} is too old, {oldest} is needed: upgrade apsw")


def _build_pragmas(*, reader: bool) -> list[str]:
    pragmas = [
        "synchronous = FULL",
        "foreign_keys = ON",
        "recursive_triggers = OFF",
        "temp_store = MEMORY",
        f"journal_size_limit = {JOURNAL_LIMIT}",
        # The writer thread checkpoints, after the callers have their results.
        "wal_autocheckpoint = 0",
    ]
    if sys.platform == "darwin":
        pragmas += ["fullfsync = ON", "checkpoint_fullfsync = ON"]
    # Small, since a process has several connections and the system caches the file for all of them.
    pragmas += ["query_only = ON", "cache_size = -500"] if reader else ["cache_size = -2000"]
    return pragmas


def reject_network_filesystem(path: Path, kind: str) -> None:
    """Raise ``StoreUnusable`` if ``kind``, the file system of ``path``, is a network one."""
    if classify_filesystem(kind) is Locality.NETWORK:
        raise StoreUnusable(
            f"{path} is on a network file system ({kind}), where SQLite can lose data: "
            "put the store on a local disk, or use PostgreSQL"
        )


def _create_private_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnusable(f"the folder {folder} cannot be made: {error.strerror}") from error


def create_file(path: Path) -> None:
    """Create the file, readable only by its owner, if it does not exist."""
    # Done here because the log and the shared memory inherit the mode of the file. An existing
    # file is never opened: closing any descriptor of it would drop the POSIX locks that SQLite
    # holds on it for this whole process. For the same reason other threads wait for the close.
    with _creating, contextlib.suppress(FileExistsError):
        if not path.exists():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _reject_read_only(place: Path) -> None:
    if place.exists() and not os.access(place, os.W_OK):
        raise StoreUnusable(
            f"{place} cannot be written by this user: change its owner or mode, "
            "or name another place for the store"
        )


def reject_foreign_database(connection: apsw.Connection, path: Path) -> None:
    """Raise ``StoreUnusable`` if the file has tables that are not Clew's; write nothing."""
    # Before the first write: entering WAL mode changes the file. Read the tables first: another
    # process that creates the store now sets its application id before its first table.
    tables = fetch_rows(connection, "SELECT name FROM sqlite_schema LIMIT 1")
    ((signature,),) = fetch_rows(connection, "PRAGMA application_id")
    if signature != APPLICATION_ID and (signature or tables):
        raise StoreUnusable(
            f"the database {path} belongs to another program: "
            "give Clew a file of its own; nothing was changed"
        )


def set_application_id(connection: apsw.Connection) -> None:
    """Mark the file as ours in its header."""
    if fetch_rows(connection, "PRAGMA application_id") != [(APPLICATION_ID,)]:
        fetch_rows(connection, f"PRAGMA application_id = {APPLICATION_ID}")


def _clear_backup_stamp(connection: apsw.Connection) -> bool:
    """
    Remove the stamp of a backup that is opened as a store for the first time.

    Returns whether there was one.
    """
    if fetch_rows(connection, "PRAGMA user_version") == [(0,)]:
        return False
    fetch_rows(connection, "PRAGMA user_version = 0")
    return True


def _set_journal_mode(connection: apsw.Connection, path: Path, wanted: str) -> None:
    # Two processes that change it at once get "busy" without the usual wait, so wait here.
    until = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            ((mode,),) = fetch_rows(connection, f"PRAGMA journal_mode = {wanted}")
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
