"""Store that is built in a file beside the current one and replaces it."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Final

import apsw

from clew.clock import SystemClock
from clew.errors import StoreDamaged, StoreInUse, StoreNotEmpty
from clew.store.sqlite.driver import fetch_rows, new_cursor
from clew.store.sqlite.errors import translate_error
from clew.store.sqlite.filesystems import Locality, classify_filesystem, detect_filesystem
from clew.store.sqlite.liveness import SqliteLiveness
from clew.store.sqlite.opening import connect, prepare_location, reject_foreign_database
from clew.store.sqlite.page_copy import INCOMPLETE_HEADER, copy_pages
from clew.store.sqlite.staged_files import (
    find_log_files,
    lock_file,
    sync_directory,
    translate_os_errors,
)
from clew.store.sqlite.sync_store import SqliteSyncStore, open_exclusive, open_shared
from clew.store.sqlite.tx import JobContext, SqliteTx
from clew.store.staged_store import StagedStore
from clew.store.transactions.open_processes import check_replaceable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from clew.store.sync_store import SyncStore

#: Milliseconds to wait for other processes to close the store.
_LOCK_TIMEOUT_MS: Final = 2000
_IN_USE: Final = "another process has the store {} open: end it, and try again"


class SqliteStagedStore(StagedStore):
    """File ``clew.db.incoming``, which becomes ``clew.db``."""

    def __init__(self, path: Path, *, run_dir: Path) -> None:
        """
        Start a build, or resume an earlier one.

        :raises StoreInUse: while another process builds there
        :raises StoreUnusable: if no store can be there
        """
        prepare_location(path, run_dir=run_dir)
        self.name = str(path)
        self._path, self._run_dir = path, run_dir
        self._file = path.with_name(f"{path.name}.incoming")
        with translate_os_errors(self._file):
            self._descriptor = lock_file(self._file)
        if os.pread(self._descriptor, len(INCOMPLETE_HEADER), 0) == INCOMPLETE_HEADER:
            self._truncate_file()
        self._built = open_exclusive(self._file)

    def clear(self) -> None:
        self._built.close()
        self._truncate_file()
        self._built = open_exclusive(self._file)

    def _truncate_file(self) -> None:
        os.ftruncate(self._descriptor, 0)
        for log in find_log_files(self._file):
            log.unlink()

    def copy_pages_from(self, file: SyncStore, *, tell: Callable[[int, int], None]) -> bool:
        self._built.close()
        self._truncate_file()
        with translate_os_errors(self._file):
            file.read(copy_pages, self._descriptor, stamp=0, tell=tell)
        self._built = open_exclusive(self._file)
        return True

    @property
    def store(self) -> SqliteSyncStore:
        return self._built

    def check_publishable(self, *, replace: bool) -> None:
        if not self._path.exists():
            return
        try:
            with open_shared(self._path, run_dir=self._run_dir) as used:
                used.read(check_replaceable, used.name, replace=replace)
        except StoreDamaged as error:
            if not replace:
                raise StoreNotEmpty(self.name) from error

    def publish(self, *, replace: bool) -> str | None:
        local = classify_filesystem(detect_filesystem(self._path)) is Locality.LOCAL
        self._built.finalize_file(stamp=0, journal="wal" if local else "delete")
        self._built.close()
        os.fsync(self._descriptor)
        aside = _find_free_name(self._path)
        with (
            translate_os_errors(self._path),
            _exclusive_access(self._path, self._run_dir, replace=replace) as empty,
        ):
            if self._path.exists():
                aside.hardlink_to(self._path)
            # A log of the previous file must not be taken for ours.
            for log in find_log_files(self._path):
                log.rename(aside.with_name(f"{aside.name}{log.name.removeprefix(self._path.name)}"))
            self._file.replace(self._path)
            sync_directory(self._path.parent)
        if not empty:
            return str(aside)
        aside.unlink(missing_ok=True)
        return None

    def close(self) -> None:
        self._built.close()
        os.close(self._descriptor)


def _find_free_name(path: Path) -> Path:
    """Return an unused file name with the current time, for the previous store."""
    name = time.strftime(f"{path.name}.before-%Y%m%d-%H%M%S")
    names = (path.with_name(f"{name}{more}") for more in ("", *(f"-{n}" for n in range(2, 100))))
    return next(free for free in names if not free.exists())


@contextmanager
def _exclusive_access(path: Path, run_dir: Path, *, replace: bool) -> Generator[bool]:
    """
    Lock all other processes out of a store; yield whether it is empty or missing.

    A store that is too damaged to be opened cannot be locked, but nobody can use it either.
    """
    if not path.exists():
        yield True
        return
    with ExitStack() as stack:
        try:
            # Runs after the connection is closed, and so after its rollback.
            stack.push(_restore_journal_mode(path))
            connection = connect(path, reader=False)
            stack.callback(connection.close)
            empty = _lock_exclusively(connection, path, SqliteLiveness(run_dir), replace=replace)
        except (apsw.NotADBError, apsw.CorruptError, StoreDamaged) as error:
            if not replace:
                raise StoreNotEmpty(str(path)) from error
            stack.close()
            empty = False
        except apsw.BusyError as error:
            raise StoreInUse(_IN_USE.format(path)) from error
        except apsw.Error as error:
            raise translate_error(error) from error
        yield empty


def _restore_journal_mode(path: Path) -> Callable[..., None]:
    """Return a callback that restores a store's journal mode when a block fails."""
    with closing(connect(path, reader=False)) as before:
        ((mode,),) = fetch_rows(before, "PRAGMA journal_mode")

    def restore_mode(kind: object, _error: object, _traceback: object) -> None:
        if kind is None:
            return
        with suppress(apsw.Error), closing(connect(path, reader=False)) as connection:
            fetch_rows(connection, f"PRAGMA journal_mode = {mode}")

    return restore_mode


def _lock_exclusively(
    connection: apsw.Connection, path: Path, owners: SqliteLiveness, *, replace: bool
) -> bool:
    connection.set_busy_timeout(_LOCK_TIMEOUT_MS)
    reject_foreign_database(connection, path)
    # Every process that has the store open has its log open: this works for a lone user only.
    fetch_rows(connection, "PRAGMA journal_mode = DELETE")
    cursor = new_cursor(connection)
    cursor.execute("BEGIN EXCLUSIVE")
    # Another process may have opened it in between.
    if fetch_rows(connection, "PRAGMA journal_mode") != [("delete",)]:
        raise StoreInUse(_IN_USE.format(path))
    tx = SqliteTx(connection, cursor, JobContext(SystemClock(), owners))
    return check_replaceable(tx, str(path), replace=replace)
