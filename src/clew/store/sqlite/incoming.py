"""A store that is built in a file beside, and takes the place of the file that is there."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Final

import apsw

from clew.clock import SystemClock
from clew.errors import StoreDamaged, StoreInUse, StoreNotEmpty
from clew.store.incoming import Incoming
from clew.store.sqlite.direct import SqliteDirect, open_alone, open_used
from clew.store.sqlite.driver import cursor_of, rows_of
from clew.store.sqlite.exclusive import held, logs_of, sync_folder, told
from clew.store.sqlite.failures import translated
from clew.store.sqlite.filesystems import Locality, filesystem_of, locality_of
from clew.store.sqlite.handle import SqliteTx, Surroundings
from clew.store.sqlite.opening import connect, prepare_place, refuse_foreign
from clew.store.sqlite.owners import Owners
from clew.store.sqlite.pages import NOT_WHOLE, copy_pages
from clew.store.transactions.holders import check_replaceable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from clew.store.direct import Direct

#: Milliseconds that we wait for others to close the store.
_PATIENCE: Final = 2000
_IN_USE: Final = "another process has the store {} open: end it, and try again"


class SqliteIncoming(Incoming):
    """``clew.db.incoming``, which becomes ``clew.db``."""

    def __init__(self, path: Path, *, run_dir: Path) -> None:
        """
        Begin, or go on with what is there.

        :raises StoreInUse: while another process builds there
        :raises StoreUnusable: if there can be no store
        """
        prepare_place(path, run_dir=run_dir)
        self.name = str(path)
        self._path, self._run_dir = path, run_dir
        self._file = path.with_name(f"{path.name}.incoming")
        with told(self._file):
            self._descriptor = held(self._file)
        if os.pread(self._descriptor, len(NOT_WHOLE), 0) == NOT_WHOLE:
            self._empty()
        self._built = open_alone(self._file)

    def clear(self) -> None:
        self._built.close()
        self._empty()
        self._built = open_alone(self._file)

    def _empty(self) -> None:
        os.ftruncate(self._descriptor, 0)
        for log in logs_of(self._file):
            log.unlink()

    def fill_with(self, file: Direct, *, tell: Callable[[int, int], None]) -> None:
        """Begin with the pages of another file."""
        self._built.close()
        self._empty()
        with told(self._file):
            file.read(copy_pages, self._descriptor, stamp=0, tell=tell)
        self._built = open_alone(self._file)

    @property
    def direct(self) -> SqliteDirect:
        return self._built

    def check(self, *, replace: bool) -> None:
        if not self._path.exists():
            return
        try:
            with open_used(self._path, run_dir=self._run_dir) as used:
                used.read(check_replaceable, "sqlite", used.name, replace=replace)
        except StoreDamaged as error:
            if not replace:
                raise StoreNotEmpty(self.name) from error

    def publish(self, *, replace: bool) -> str | None:
        local = locality_of(filesystem_of(self._path)) is Locality.LOCAL
        self._built.settle(stamp=0, journal="wal" if local else "delete")
        self._built.close()
        os.fsync(self._descriptor)
        aside = _free_name(self._path)
        with told(self._path), _alone_with(self._path, self._run_dir, replace=replace) as empty:
            if self._path.exists():
                aside.hardlink_to(self._path)
            # A log of whatever was there must not be taken for ours.
            for log in logs_of(self._path):
                log.rename(aside.with_name(f"{aside.name}{log.name.removeprefix(self._path.name)}"))
            self._file.replace(self._path)
            sync_folder(self._path.parent)
        if not empty:
            return str(aside)
        aside.unlink(missing_ok=True)
        return None

    def close(self) -> None:
        self._built.close()
        os.close(self._descriptor)


def _free_name(path: Path) -> Path:
    """A name that tells people when the file had another."""
    name = time.strftime(f"{path.name}.before-%Y%m%d-%H%M%S")
    names = (path.with_name(f"{name}{more}") for more in ("", *(f"-{n}" for n in range(2, 100))))
    return next(free for free in names if not free.exists())


@contextmanager
def _alone_with(path: Path, run_dir: Path, *, replace: bool) -> Generator[bool]:
    """
    Keep everybody from a store for the length of the block; whether it is empty, or not there.

    One that is too damaged to be opened can be kept from nobody, and nobody can use it.
    """
    if not path.exists():
        yield True
        return
    with ExitStack() as stack:
        try:
            # Carried out after the connection is closed, and so what it was at is rolled back.
            stack.push(_journal_kept(path))
            connection = connect(path, reader=False)
            stack.callback(connection.close)
            empty = _exclude_others(connection, path, Owners(run_dir), replace=replace)
        except (apsw.NotADBError, apsw.CorruptError, StoreDamaged) as error:
            if not replace:
                raise StoreNotEmpty(str(path)) from error
            stack.close()
            empty = False
        except apsw.BusyError as error:
            raise StoreInUse(_IN_USE.format(path)) from error
        except apsw.Error as error:
            raise translated(error) from error
        yield empty


def _journal_kept(path: Path) -> Callable[..., None]:
    """Return what gives a store that stays its journal mode back, as a block ends by an error."""
    with closing(connect(path, reader=False)) as before:
        ((mode,),) = rows_of(before, "PRAGMA journal_mode")

    def give_back(kind: object, _error: object, _traceback: object) -> None:
        if kind is None:
            return
        with suppress(apsw.Error), closing(connect(path, reader=False)) as connection:
            rows_of(connection, f"PRAGMA journal_mode = {mode}")

    return give_back


def _exclude_others(
    connection: apsw.Connection, path: Path, owners: Owners, *, replace: bool
) -> bool:
    connection.set_busy_timeout(_PATIENCE)
    refuse_foreign(connection, path)
    # Whoever has the store open has its log open: only who is alone can do without one.
    rows_of(connection, "PRAGMA journal_mode = DELETE")
    cursor = cursor_of(connection)
    cursor.execute("BEGIN EXCLUSIVE")
    # Somebody may have come in between.
    if rows_of(connection, "PRAGMA journal_mode") != [("delete",)]:
        raise StoreInUse(_IN_USE.format(path))
    tx = SqliteTx(connection, cursor, Surroundings(SystemClock(), owners))
    return check_replaceable(tx, "sqlite", str(path), replace=replace)
