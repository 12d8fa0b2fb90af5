"""Disk usage, and the release of free space in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, LiteralString

from clew.record import Record

if TYPE_CHECKING:
    from clew.store.contract import Dialect, Tx

#: Free pages that are kept for the next writes.
_MIN_FREE_PAGES = 1000
#: Release space when more than one page in this many is free.
_FREE_PAGE_DIVISOR = 10
#: Few pages at a time: each may have to be moved.
_INCREMENTAL = 2
_RELEASE_PAGES: LiteralString = "PRAGMA incremental_vacuum(200)"

_INDEX_SIZES: dict[Dialect, LiteralString] = {
    "sqlite": "SELECT COALESCE(sum(length(block)), 0) FROM search_index_data",
    "postgres": "SELECT pg_total_relation_size('search_index')",
}
_BLOBS: LiteralString = "SELECT count(*), COALESCE(sum(size), 0) FROM blob"


class DiskUsage(Record):
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
    ((attachments, blobs),) = t.fetch_all(_BLOBS)
    index = t.fetch_value(_INDEX_SIZES[t.dialect])
    if t.dialect == "sqlite":
        size, pages, free = _read_page_counts(t)
        whole, spare = size * pages, size * free
    else:
        whole, spare = t.fetch_value("SELECT pg_database_size(current_database())"), None
    return DiskUsage(
        total=whole, index=int(index), blobs=int(blobs), attachments=attachments, free=spare
    )


def has_reclaimable_space(t: Tx) -> bool:
    """Return true if much of the file is free and can be released."""
    if t.dialect != "sqlite":
        return False
    _, pages, free = _read_page_counts(t)
    much = free > max(_MIN_FREE_PAGES, pages // _FREE_PAGE_DIVISOR)
    return much and t.fetch_value("PRAGMA auto_vacuum") == _INCREMENTAL


def release_space(t: Tx) -> int:
    """Return some free pages to the file system, and report how many."""
    _, before, _ = _read_page_counts(t)
    t.fetch_all(_RELEASE_PAGES)
    _, after, _ = _read_page_counts(t)
    return before - after


def _read_page_counts(t: Tx) -> tuple[int, int, int]:
    """Return the page size in bytes, the number of pages and the number of free pages."""
    return (
        t.fetch_value("PRAGMA page_size"),
        t.fetch_value("PRAGMA page_count"),
        t.fetch_value("PRAGMA freelist_count"),
    )
