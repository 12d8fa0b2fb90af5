"""Creation of a backup while others may be using the store."""

from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from clew.errors import StoreDamaged, StoreError, UsageError
from clew.record import Record
from clew.store.backup import files
from clew.store.backup.verification import verify_store_file
from clew.store.copying import target
from clew.store.copying.copy import CopyResult, CopySource, copy_rows
from clew.store.copying.tables import count_table_rows
from clew.store.feature_migrations import create_feature_tables, read_feature_statements
from clew.store.file_header import UNFINISHED
from clew.store.migrate import migrate_schema, read_applied_migrations
from clew.store.opening import open_sync_store, sqlite_path
from clew.store.sqlite.page_copy import PageCopyResult, copy_pages
from clew.store.sqlite.staged_files import translate_os_errors
from clew.store.sqlite.sync_store import open_exclusive, open_read_only

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from clew.store.contract import Tx
    from clew.store.copying.copy import ProgressCallback
    from clew.store.sync_store import SyncStore


class BackupInfo(Record):
    """Published backup."""

    file: Path
    #: The time of its snapshot, which has everything acknowledged before.
    taken_at: datetime
    #: Bytes.
    size: int
    #: Rows of each table.
    counts: dict[str, int]
    #: SQLite only: its pages, and how many of them were written.
    pages: PageCopyResult | None
    #: The kept older backups, newest first.
    older: list[Path]
    #: Faults that ``clew fsck --repair`` would repair, in the store and in its backup.
    repairable: list[str]


class _Snapshot(Record):
    counts: dict[str, int]
    #: Seconds since the epoch.
    at: int
    pages: PageCopyResult | None = None


def create_backup(
    url: str, *, home: Path, file: Path, keep: int = 2, tell: ProgressCallback
) -> BackupInfo:
    """
    Copy the store to ``file``, replacing an older backup once the copy is verified.

    On SQLite only the pages that differ from the oldest of ``keep`` files are written.

    :raises UsageError: if there is no store, or ``file`` is not a backup
    :raises StoreInUse: while another backup is made there
    :raises StoreDamaged: if the copy, and so the store, is damaged; the older backup is
        kept
    """
    file = file.absolute()
    with translate_os_errors(file):
        _reject_store_path(url, home, file)
        files.reject_foreign_files(file, keep=keep)
        with _explain_damage(), open_sync_store(url, home=home) as source:
            # Before the oldest backup is overwritten: the store may be unreadable.
            source.read(count_table_rows)
            with files.open_partial(file, keep=keep) as unfinished:
                found = _copy_store(source, unfinished, tell)
                files.write_seal(unfinished.descriptor)
                repairable = _verify_copy(unfinished.path, found, tell)
                behind = unfinished.publish()
        return BackupInfo(
            file=file,
            taken_at=datetime.fromtimestamp(found.at, UTC),
            size=file.stat().st_size,
            counts=found.counts,
            pages=found.pages,
            older=behind,
            repairable=repairable,
        )


def _reject_store_path(url: str, home: Path, file: Path) -> None:
    store = sqlite_path(url, home=home)
    if store is not None and store.resolve() == file.resolve():
        raise UsageError(f"{file} is the store itself: name another file for its backup")


def _copy_rows(t: Tx, source: SyncStore, copy: SyncStore, tell: ProgressCallback) -> CopyResult:
    return copy_rows(CopySource(t=t, name=source.name), copy, tell=tell)


@contextmanager
def _explain_damage() -> Generator[None]:
    try:
        yield
    except StoreDamaged as error:
        raise StoreDamaged(
            f"the store is damaged, and no backup was made of it ({error}); an older backup is "
            "unchanged. Check the store with clew fsck"
        ) from error


def _copy_store(
    source: SyncStore, unfinished: files.PartialBackup, tell: ProgressCallback
) -> _Snapshot:
    if source.dialect == "sqlite":
        return source.read(_copy_by_pages, unfinished.descriptor, tell)
    return _copy_by_rows(source, unfinished, tell)


def _copy_by_pages(t: Tx, descriptor: int, tell: ProgressCallback) -> _Snapshot:
    found, at = count_table_rows(t), t.now // 1000
    pages = copy_pages(
        t, descriptor, stamp=at, tell=lambda done, total: tell("copying pages", done, total)
    )
    return _Snapshot(counts=found, at=at, pages=pages)


def _copy_by_rows(
    source: SyncStore, unfinished: files.PartialBackup, tell: ProgressCallback
) -> _Snapshot:
    os.ftruncate(unfinished.descriptor, 0)
    done = source.read(read_applied_migrations) or {}
    with open_exclusive(unfinished.path) as copy:
        copy.finalize_file(stamp=UNFINISHED)
        copy.write(migrate_schema, only=done)
        tables = source.read(read_feature_statements, "sqlite")
        copy.write(create_feature_tables, tables)
        copy.write(target.begin_fill, source.name)
        copied = source.read(_copy_rows, source, copy, tell)
        copy.write(target.finish_fill, copied.numbers)
        copy.finalize_file(stamp=copied.at // 1000)
    return _Snapshot(counts=copied.counts, at=copied.at // 1000)


def _verify_copy(path: Path, found: _Snapshot, tell: ProgressCallback) -> list[str]:
    """Verify the copy; return what could be repaired in it."""
    with open_read_only(path) as copy:
        repairable = verify_store_file(copy, tell=tell)
        stored = copy.read(count_table_rows)
    if stored != found.counts:
        raise StoreError(f"the copy does not match the store: {stored}, not {found.counts}")
    return repairable
