"""Copying, and comparing what was copied."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from clew.errors import StoreUnavailable, StoreUnusable
from clew.store.copying import filling
from clew.store.copying.slices import slices
from clew.store.copying.tables import Table, counts, numbers, tables

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.store.contract import Row, Tx
    from clew.store.direct import Direct
    from clew.store.migrate import Dialect


class Tell(Protocol):
    """Hears how far a long work is."""

    def __call__(self, what: str, done: int, total: int, /) -> None:
        """``what`` is being done, in a few words; ``total`` may be 0."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """What rows are read from: one snapshot, whatever others write meanwhile."""

    t: Tx
    dialect: Dialect
    #: For people, and to know it again.
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Copied:
    """The snapshot that was copied."""

    #: Rows of each table.
    counts: dict[str, int]
    #: The highest number that each table has ever given.
    numbers: dict[str, int]
    #: When it was taken, in milliseconds by the clock of the source.
    at: int


def copy_rows(source: Source, target: Direct, *, tell: Tell, in_parts: bool = False) -> Copied:
    """
    Add every row of the source to a target that was begun, and can be finished then.

    The search index is not copied: it is to be made anew.

    :param in_parts: rows that the target has already stay; ``compare`` tells if they are the same
    :raises StoreUnusable: if the two do not have the same tables
    :raises StoreUnavailable: if the target has rows already, and not ``in_parts``
    """
    reached = target.read(filling.progress)
    if reached and not in_parts:
        raise StoreUnavailable(
            f"the connection to {source.name} was lost on the way: nothing was changed, try again"
        )
    wanted = tables(source.t, source.dialect)
    _refuse_others(wanted, target.read(tables, target.dialect))
    found = counts(source.t, source.dialect)
    total, done = sum(found.values()), sum(target.read(counts, target.dialect).values())
    for table in wanted:
        for rows in slices(source.t, table, reached.get(table.name)):
            tell("copying rows", done, total)
            target.write(filling.add, table, rows)
            done += len(rows)
    return Copied(counts=found, numbers=numbers(source.t, source.dialect), at=source.t.now)


def _refuse_others(ours: list[Table], theirs: list[Table]) -> None:
    for one, other in zip(ours, theirs, strict=False):
        if one != other:
            raise StoreUnusable(f"the tables {one.name} and {other.name} are not the same")
    if len(ours) != len(theirs):
        raise StoreUnusable(f"one store has {len(ours)} tables, the other {len(theirs)}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Digest:
    """A table in a few bytes: the same rows in any order give the same, others do not."""

    rows: int
    sum: int


def compare(source: Source, target: Direct, *, tell: Tell) -> list[str]:
    """The tables that do not have exactly the same rows on both sides."""
    ours = digests(source.t, source.dialect, source.name, tell)
    theirs = target.read(digests, target.dialect, target.name, tell)
    return sorted(name for name in ours | theirs if ours.get(name) != theirs.get(name))


def digests(t: Tx, dialect: Dialect, name: str, tell: Tell) -> dict[str, Digest]:
    """Every table of a store."""
    found: dict[str, Digest] = {}
    total, done = sum(counts(t, dialect).values()), 0
    for table in tables(t, dialect):
        digest = Digest(rows=0, sum=0)
        for rows in slices(t, table):
            tell(f"comparing {name}", done, total)
            digest = _with(digest, rows)
            done += len(rows)
        found[table.name] = digest
    return found


def _with(digest: Digest, rows: Iterable[Row]) -> Digest:
    # Both drivers give str, int, bytes and None, which repr tells apart.
    count, total = digest.rows, digest.sum
    for row in rows:
        count += 1
        total += int.from_bytes(hashlib.sha256(repr(row).encode("utf-8", "surrogatepass")).digest())
    return Digest(rows=count, sum=total % 2**256)
