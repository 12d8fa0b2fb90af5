"""Migration of a whole store to another place or database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import StoreError, StoreNotEmpty, StoreUnusable, UsageError
from clew.record import Record
from clew.store.copying import target as filling
from clew.store.copying.copy import CopySource, compare_tables, copy_rows
from clew.store.copying.tables import lock_tables
from clew.store.feature_migrations import create_feature_tables, read_feature_statements
from clew.store.migrate import find_pending_migrations, migrate_schema, read_applied_migrations
from clew.store.opening import open_staged_store, open_sync_store
from clew.store.transactions.open_processes import raise_if_in_use
from clew.store.transactions.runtime_state import clear_runtime_state

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clew.store.contract import Tx
    from clew.store.copying.copy import CopyResult, ProgressCallback
    from clew.store.staged_store import StagedStore
    from clew.store.sync_store import SyncStore
    from clew.store.transactions.runtime_state import ResumableWork


class MigrationResult(Record):
    """Result of copying a store to its new place."""

    source: str
    target: str
    #: Rows of each table, the same on both sides.
    counts: dict[str, int]
    #: The copy resumed an earlier one that was interrupted.
    resumed: bool
    unfinished_work: ResumableWork


def migrate_store(
    source_url: str, target_url: str, *, home: Path, tell: ProgressCallback
) -> MigrationResult:
    """
    Copy a store that nobody uses into an empty target; the source is unchanged.

    An interrupted copy resumes when this is called again. The target becomes usable only
    after all its rows were read again and compared; until then nobody can write to the
    source.

    :raises StoreInUse: while a process works on one of them
    :raises UsageError: if there is no source, or the target is not empty
    :raises StoreError: if the target's rows differ from the source's
    """
    with open_sync_store(source_url, home=home) as source:
        _reject_outdated_schema(source)
        with open_staged_store(target_url, home=home) as place:
            try:
                return source.write(_copy_and_publish, source, place, tell)
            except StoreNotEmpty as error:
                raise UsageError(f"{error}: name an empty database") from error


def _copy_and_publish(
    t: Tx, source: SyncStore, place: StagedStore, tell: ProgressCallback
) -> MigrationResult:
    """Copy within a write transaction on the source, so that it cannot change meanwhile."""
    lock_tables(t)
    raise_if_in_use(t, source.name)
    place.check_publishable(replace=False)
    rows = CopySource(t=t, name=source.name)
    copied, resumed = transfer_rows(rows, place, tell=tell)
    begun = place.store.write(clear_runtime_state, later=False)
    place.publish(replace=False)
    return MigrationResult(
        source=source.name,
        target=place.name,
        counts=copied.counts,
        resumed=resumed,
        unfinished_work=begun,
    )


def _reject_outdated_schema(source: SyncStore) -> None:
    due = source.read(find_pending_migrations)
    if due:
        raise StoreUnusable(
            f"the schema of {source.name} lacks {', '.join(due)}: bring it up to date first, by "
            "any command that uses it, such as clew sessions list"
        )


def transfer_rows(
    source: CopySource, place: StagedStore, *, tell: ProgressCallback
) -> tuple[CopyResult, bool]:
    """
    Copy and compare all rows; return whether an earlier copy was resumed.

    :raises StoreError: if both sides differ in the end; the target is then empty again
    """
    resumed = _prepare_target(source, place)
    copied = copy_rows(source, place.store, tell=tell, in_parts=resumed)
    differ = compare_tables(source, place.store, tell=tell)
    if differ:
        place.clear()
        if resumed:  # the source was used since the earlier copy
            return transfer_rows(source, place, tell=tell)
        raise StoreError(
            f"what {place.name} took of {source.name} is not what it was given "
            f"({', '.join(differ)}); nothing was changed"
        )
    tell("checking references", 0, 0)
    place.store.write(filling.finish_fill, copied.numbers)
    return copied, resumed


def _prepare_target(source: CopySource, place: StagedStore) -> bool:
    """Prepare the target; return whether it already has rows of this source."""
    begun = place.store.write(_read_unfinished_source)
    if begun == source.name:
        return True
    if begun is not None:
        place.clear()
    tables = read_feature_statements(source.t, place.store.dialect)
    place.store.write(_create_schema, source.name, tables)
    return False


def _read_unfinished_source(t: Tx) -> str | None:
    """Return the source of the target's unfinished copy; ``None`` if it is empty."""
    if read_applied_migrations(t) is None:
        return None
    return filling.read_source(t) or ""


def _create_schema(t: Tx, source: str, tables: Sequence[str]) -> None:
    migrate_schema(t)
    create_feature_tables(t, tables)
    filling.begin_fill(t, source)
