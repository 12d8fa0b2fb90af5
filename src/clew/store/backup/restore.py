"""Restore of a backup in place of a store."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from clew.errors import StoreNotEmpty, UsageError
from clew.record import Record
from clew.store.backup.verify import verify_contents, verify_file
from clew.store.copying.copy import CopySource
from clew.store.copying.migrate_store import transfer_rows
from clew.store.copying.tables import count_table_rows
from clew.store.migrate import find_pending_migrations, migrate_schema
from clew.store.opening import open_staged_store, sqlite_path
from clew.store.sqlite.staged_files import translate_os_errors
from clew.store.sqlite.staged_store import SqliteStagedStore
from clew.store.sqlite.sync_store import open_read_only
from clew.store.transactions.runtime_state import clear_runtime_state

if TYPE_CHECKING:
    from collections.abc import Generator
    from datetime import datetime

    from clew.store.contract import Tx
    from clew.store.copying.copy import ProgressCallback
    from clew.store.staged_store import StagedStore
    from clew.store.sync_store import SyncStore
    from clew.store.transactions.runtime_state import ResumableWork


class RestoreResult(Record):
    """Result of a restore."""

    file: Path
    #: When the backup was taken; ``None`` if the file is a plain copy of a store.
    taken_at: datetime | None
    #: The restored store.
    store: str
    #: Rows of each table, as in the backup.
    counts: dict[str, int]
    #: Path of the previous store.
    previous_store: str | None
    unfinished_work: ResumableWork


def restore_backup(
    url: str, *, home: Path, file: Path, replace: bool = False, tell: ProgressCallback
) -> RestoreResult:
    """
    Restore the store that ``url`` names to the state of a backup.

    Everything is verified before anything is changed, and published in one step at the end.
    The processes of that time are forgotten: interrupted turns resume when the store is
    used next.

    :raises UsageError: if the file is missing, or the store is not empty, unless
        ``replace``
    :raises StoreInUse: while a process works on the store
    :raises StoreDamaged: if the backup is incomplete
    :raises StoreUnusable: if the file is not a backup, or a newer Clew made it
    """
    file = file.absolute()
    with translate_os_errors(file):
        taken_at = verify_file(file, store=sqlite_path(url, home=home), tell=tell)
        with open_read_only(file) as kept, open_staged_store(url, home=home) as place:
            try:
                place.check_publishable(replace=replace)
                verify_contents(kept, tell)
                found = kept.read(count_table_rows)
                begun = _fill_store(kept, place, home=home, tell=tell)
                store = place.name
                aside = place.publish(replace=replace)
            except StoreNotEmpty as error:
                raise UsageError(
                    f"{error}: with --replace the backup takes its place, and it is kept under "
                    "another name"
                ) from error
    return RestoreResult(
        file=file,
        taken_at=taken_at,
        store=store,
        counts=found,
        previous_store=aside,
        unfinished_work=begun,
    )


def _fill_store(
    kept: SyncStore, place: StagedStore, *, home: Path, tell: ProgressCallback
) -> ResumableWork:
    if place.copy_pages_from(kept, tell=lambda done, total: tell("copying pages", done, total)):
        place.store.write(migrate_schema)
    else:
        with _open_migrated(kept, home) as source:
            source.read(_transfer_rows, source, place, tell)
    return place.store.write(clear_runtime_state, later=True)


def _transfer_rows(t: Tx, source: SyncStore, place: StagedStore, tell: ProgressCallback) -> None:
    transfer_rows(CopySource(t=t, name=source.name), place, tell=tell)


@contextmanager
def _open_migrated(kept: SyncStore, home: Path) -> Generator[SyncStore]:
    """Yield the backup, or a copy of it with the current schema."""
    if not kept.read(find_pending_migrations):
        yield kept
        return
    with (
        tempfile.TemporaryDirectory(prefix="restoring-", dir=home) as folder,
        SqliteStagedStore(Path(folder) / "copy.db", run_dir=Path(folder)) as copy,
    ):
        copy.copy_pages_from(kept, tell=lambda _done, _total: None)
        copy.store.write(migrate_schema)
        yield copy.store
