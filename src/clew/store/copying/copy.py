"""Copy of rows between stores, and the comparison afterwards."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Protocol

from clew.errors import StoreUnavailable, StoreUnusable
from clew.record import Record
from clew.store.copying import target as filling
from clew.store.copying.batches import iter_batches
from clew.store.copying.tables import Table, count_table_rows, list_tables, read_sequences

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.store.contract import Row, Tx
    from clew.store.sync_store import SyncStore


class ProgressCallback(Protocol):
    """Callback for the progress of a long operation."""

    def __call__(self, what: str, done: int, total: int, /) -> None:
        """Report progress; ``what`` names the operation in a few words, ``total`` may be 0."""
        ...


class CopySource(Record):
    """Snapshot from which rows are read, unaffected by other writers."""

    t: Tx
    #: For people, and to recognise it on resumption.
    name: str


class CopyResult(Record):
    """Snapshot that was copied."""

    #: Rows of each table.
    counts: dict[str, int]
    #: The highest number that each table has ever assigned.
    numbers: dict[str, int]
    #: When it was taken, in milliseconds by the clock of the source.
    at: int


def copy_rows(
    source: CopySource, target: SyncStore, *, tell: ProgressCallback, in_parts: bool = False
) -> CopyResult:
    """
    Add every row of the source to a target between ``begin_fill`` and ``finish_fill``.

    The search index is not copied: it has to be rebuilt.

    :param in_parts: keep the rows that the target already has; ``compare_tables`` finds
        differences
    :raises StoreUnusable: if the two do not have the same tables
    :raises StoreUnavailable: if the target has rows already, and not ``in_parts``
    """
    reached = target.read(filling.read_progress)
    if reached and not in_parts:
        raise StoreUnavailable(
            f"the connection to {source.name} was lost on the way: nothing was changed, try again"
        )
    wanted = list_tables(source.t)
    _reject_different_tables(wanted, target.read(list_tables))
    found = count_table_rows(source.t)
    total, done = sum(found.values()), sum(target.read(count_table_rows).values())
    for table in wanted:
        for rows in iter_batches(source.t, table, reached.get(table.name)):
            tell("copying rows", done, total)
            target.write(filling.add_batch, table, rows)
            done += len(rows)
    return CopyResult(counts=found, numbers=read_sequences(source.t), at=source.t.now)


def _reject_different_tables(ours: list[Table], theirs: list[Table]) -> None:
    for one, other in zip(ours, theirs, strict=False):
        if one != other:
            raise StoreUnusable(f"the tables {one.name} and {other.name} are not the same")
    if len(ours) != len(theirs):
        raise StoreUnusable(f"one store has {len(ours)} tables, the other {len(theirs)}")


class TableDigest(Record):
    """Digest of a table's rows that is independent of their order."""

    rows: int
    sum: int


def compare_tables(source: CopySource, target: SyncStore, *, tell: ProgressCallback) -> list[str]:
    """Return the tables whose rows differ between the two sides."""
    ours = digest_tables(source.t, source.name, tell)
    theirs = target.read(digest_tables, target.name, tell)
    return sorted(name for name in ours | theirs if ours.get(name) != theirs.get(name))


def digest_tables(t: Tx, name: str, tell: ProgressCallback) -> dict[str, TableDigest]:
    """Return the digest of every table of a store."""
    found: dict[str, TableDigest] = {}
    total, done = sum(count_table_rows(t).values()), 0
    for table in list_tables(t):
        digest = TableDigest(rows=0, sum=0)
        for rows in iter_batches(t, table):
            tell(f"comparing {name}", done, total)
            digest = _add_rows(digest, rows)
            done += len(rows)
        found[table.name] = digest
    return found


def _add_rows(digest: TableDigest, rows: Iterable[Row]) -> TableDigest:
    # Both drivers return str, int, bytes and None, which repr distinguishes.
    count, total = digest.rows, digest.sum
    for row in rows:
        count += 1
        total += int.from_bytes(hashlib.sha256(repr(row).encode("utf-8", "surrogatepass")).digest())
    return TableDigest(rows=count, sum=total % 2**256)
