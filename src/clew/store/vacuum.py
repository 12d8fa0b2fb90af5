"""Disk usage, and the release of free space in batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, LiteralString

from clew.store.sqlite.search import SqliteSearchIndex

if TYPE_CHECKING:
    from clew.store.contract import Tx

#: Free pages that are kept for the next writes.
_MIN_FREE_PAGES = 1000
#: Release space when more than one page in this many is free.
_FREE_PAGE_DIVISOR = 10
#: Few pages at a time: each may have to be moved.
_RELEASE_PAGES: LiteralString = "PRAGMA incremental_vacuum(200)"

_INDEX_SIZES: dict[bool, LiteralString] = {
    True: "SELECT COALESCE(sum(length(block)), 0) FROM search_index_data",
    False: "SELECT pg_total_relation_size('search_index')",
}
_BLOBS: LiteralString = "SELECT count(*), COALESCE(sum(size), 0) FROM blob"


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskUsage:
    """Sizes of a database and its parts, in bytes."""

    #: Of the database, without its log.
    total: int
    #: Of the search index and of attachments.
    index: int
    blobs: int
    #: Number of attachments.
    attachments: int
    #: Unused; ``None`` where the server manages it.
    free: int | None


def measure_disk_usage(t: Tx) -> DiskUsage:
    """Return the disk usage; reads the index and the list of attachments."""
    on_file = isinstance(t.search_index, SqliteSearchIndex)
    attachments, blobs = _fetch_row(t, _BLOBS)
    (index,) = _fetch_row(t, _INDEX_SIZES[on_file])
    if on_file:
        size, pages, free = _read_page_counts(t)
        whole, spare = size * pages, size * free
    else:
        (whole,), spare = _fetch_row(t, "SELECT pg_database_size(current_database())"), None
    return DiskUsage(
        total=whole, index=int(index), blobs=int(blobs), attachments=attachments, free=spare
    )


def has_reclaimable_space(t: Tx) -> bool:
    """Return true if much of the file is free and can be released."""
    if not isinstance(t.search_index, SqliteSearchIndex):
        return False
    _, pages, free = _read_page_counts(t)
    return free > max(_MIN_FREE_PAGES, pages // _FREE_PAGE_DIVISOR) and _fetch_row(
        t, "PRAGMA auto_vacuum"
    ) == (2,)


def release_space(t: Tx) -> int:
    """Return some free pages to the file system, and report how many."""
    _, before, _ = _read_page_counts(t)
    t.fetch_all(_RELEASE_PAGES)
    _, after, _ = _read_page_counts(t)
    return before - after


def _read_page_counts(t: Tx) -> tuple[int, int, int]:
    """Return the page size in bytes, the number of pages and the number of free pages."""
    ((size,), (pages,), (free,)) = (
        _fetch_row(t, "PRAGMA page_size"),
        _fetch_row(t, "PRAGMA page_count"),
        _fetch_row(t, "PRAGMA freelist_count"),
    )
    return size, pages, free


def _fetch_row(t: Tx, sql: LiteralString) -> tuple[int, ...]:
    row = t.fetch_one(sql)
    assert row is not None
    return row
