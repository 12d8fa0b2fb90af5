"""Verification of a backup that somebody has: whether it would be restored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from clew.errors import StoreDamaged, StoreUnusable, UsageError
from clew.record import Record
from clew.store.backup import files
from clew.store.backup.verification import verify_store_file
from clew.store.copying.tables import count_table_rows
from clew.store.file_header import STORE, UNFINISHED, read_stamp
from clew.store.migrate import find_pending_migrations
from clew.store.sqlite.staged_files import translate_os_errors
from clew.store.sqlite.sync_store import open_read_only

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.copying.copy import ProgressCallback
    from clew.store.sync_store import SyncStore


class VerifiedBackup(Record):
    """Backup that would be restored."""

    file: Path
    #: When it was taken; ``None`` if the file is a plain copy of a store.
    taken_at: datetime | None
    size: int
    #: Rows of each table.
    counts: dict[str, int]
    #: Violations that have a safe repair.
    repairable: list[str]


def verify_backup(file: Path, *, tell: ProgressCallback) -> VerifiedBackup:
    """
    Verify a backup as a restore does; changes nothing.

    :raises UsageError: if the file is missing
    :raises StoreDamaged: if the backup is incomplete
    :raises StoreUnusable: if the file is not a backup, or a newer Clew made it
    """
    file = file.absolute()
    with translate_os_errors(file):
        taken_at = verify_file(file, store=None, tell=tell)
        with open_read_only(file) as kept:
            repairable = verify_contents(kept, tell)
            counts = kept.read(count_table_rows)
        size = file.stat().st_size
    return VerifiedBackup(
        file=file, taken_at=taken_at, size=size, counts=counts, repairable=repairable
    )


def verify_file(file: Path, *, store: Path | None, tell: ProgressCallback) -> datetime | None:
    """
    Return when a finished backup was taken, once all its bytes are read; ``None`` for a plain copy.

    :raises UsageError: if the file is missing, or is the store
    :raises StoreUnusable: if it is not a finished backup
    :raises StoreDamaged: if its checksum is another
    """
    stamp = _read_stamp(file, store)
    if stamp == STORE:
        return None
    _read_seal(file, tell)
    return datetime.fromtimestamp(stamp, UTC)


def _read_stamp(file: Path, store: Path | None) -> int:
    if not file.exists():
        before = files.older_path(file, 1)
        hint = f"; {before} is an older backup" if before.exists() else ""
        raise UsageError(f"there is no backup {file}{hint}")
    if not file.is_file():
        raise UsageError(f"{file} is not a file: name the file of a backup")
    if store is not None and store.exists() and store.samefile(file):
        raise UsageError(f"{file} is the store itself: name the file of a backup")
    stamp = read_stamp(file)
    if stamp is None:
        raise StoreUnusable(
            f"{file} is not a backup, or its beginning is damaged; nothing was changed"
        )
    if stamp == UNFINISHED:
        raise StoreUnusable(f"{file} is a backup that was never finished; nothing was changed")
    return stamp


def _read_seal(file: Path, tell: ProgressCallback) -> None:
    tell(f"reading {file}", 0, 0)
    try:
        files.verify_seal(file)
    except StoreDamaged as error:
        raise _damaged_error(str(file), error) from error


def verify_contents(kept: SyncStore, tell: ProgressCallback) -> list[str]:
    """Check what is in an open backup; return what a repair would mend in it."""
    try:
        kept.read(find_pending_migrations)
        return verify_store_file(kept, tell=tell)
    except StoreUnusable as error:
        raise StoreUnusable(f"{kept.name} cannot be restored: {error}") from error
    except StoreDamaged as error:
        raise _damaged_error(kept.name, error) from error


def _damaged_error(name: str, error: StoreDamaged) -> StoreDamaged:
    return StoreDamaged(
        f"the backup {name} is damaged ({error}): restore an older one; nothing was changed"
    )
