"""Room on the disk: what takes it, and how what is free is given back, in slices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, LiteralString

from clew.store.sqlite.search import SqliteIndex

if TYPE_CHECKING:
    from clew.store.contract import Tx

#: Free pages that are kept: what is written next needs some.
_KEPT = 1000
#: More of the file may not be free.
_SHARE = 10
#: Gives pages back at a time; each may have to be moved.
_GIVE_BACK: LiteralString = "PRAGMA incremental_vacuum(200)"

_INDEX_SIZES: dict[bool, LiteralString] = {
    True: "SELECT COALESCE(sum(length(block)), 0) FROM search_index_data",
    False: "SELECT pg_total_relation_size('search_index')",
}
_BLOBS: LiteralString = "SELECT count(*), COALESCE(sum(size), 0) FROM blob"


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """What takes how many bytes."""

    #: Of the database, without a log.
    whole: int
    #: In it, for the search index and for attachments.
    index: int
    blobs: int
    #: How many attachments there are.
    attachments: int
    #: In it, and used for nothing; ``None`` where the server looks after that.
    free: int | None


def room(t: Tx) -> Room:
    """How much room the store takes; reads the index and the list of attachments."""
    on_file = isinstance(t.index, SqliteIndex)
    attachments, blobs = _row(t, _BLOBS)
    (index,) = _row(t, _INDEX_SIZES[on_file])
    if on_file:
        size, pages, free = _pages(t)
        whole, spare = size * pages, size * free
    else:
        (whole,), spare = _row(t, "SELECT pg_database_size(current_database())"), None
    return Room(
        whole=whole, index=int(index), blobs=int(blobs), attachments=attachments, free=spare
    )


def is_wasteful(t: Tx) -> bool:
    """Whether much of the file is free, and can be given back."""
    if not isinstance(t.index, SqliteIndex):
        return False
    _, pages, free = _pages(t)
    return free > max(_KEPT, pages // _SHARE) and _row(t, "PRAGMA auto_vacuum") == (2,)


def give_back(t: Tx) -> int:
    """Give some free pages back to the disk; how many."""
    _, before, _ = _pages(t)
    t.all(_GIVE_BACK)
    _, after, _ = _pages(t)
    return before - after


def _pages(t: Tx) -> tuple[int, int, int]:
    """Bytes of a page, how many there are, how many are free."""
    ((size,), (pages,), (free,)) = (
        _row(t, "PRAGMA page_size"),
        _row(t, "PRAGMA page_count"),
        _row(t, "PRAGMA freelist_count"),
    )
    return size, pages, free


def _row(t: Tx, sql: LiteralString) -> tuple[int, ...]:
    row = t.one(sql)
    assert row is not None
    return row
