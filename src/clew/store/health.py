"""Health of a store, for diagnostics: reads only, and little of each table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.clock import from_millis
from clew.record import Record
from clew.store.search import MAX_UNINDEXED, is_damaged

if TYPE_CHECKING:
    from datetime import datetime

    from clew.store.contract import Tx


class ClockReadings(Record):
    #: The time of the database host.
    now: datetime
    #: When the newest entry was stored, by that clock.
    newest: datetime | None


def read_clocks(t: Tx) -> ClockReadings:
    """Return the database host's time and the time of the newest entry."""
    newest = t.fetch_value("SELECT created_at FROM entry ORDER BY n DESC LIMIT 1")
    return ClockReadings(
        now=from_millis(t.now), newest=None if newest is None else from_millis(newest)
    )


def read_journal_mode(t: Tx) -> str:
    """Return SQLite's journal mode: ``wal``, or ``delete`` for a rollback journal."""
    return t.fetch_value("PRAGMA journal_mode")


class SearchIndexState(Record):
    damaged: bool
    #: Unindexed messages, counted up to ``MAX_UNINDEXED``, where searches are rejected.
    unindexed: int

    @property
    def is_unavailable(self) -> bool:
        return self.damaged or self.unindexed >= MAX_UNINDEXED


def read_search_state(t: Tx) -> SearchIndexState:
    """Return how far the search index has got."""
    damaged = is_damaged(t)
    return SearchIndexState(
        damaged=damaged, unindexed=0 if damaged else t.search_index.count_unindexed(MAX_UNINDEXED)
    )


class OrphanedLeases(Record):
    """Leases of an owner that died without releasing them."""

    owner: str
    conversations: int


def find_orphaned_leases(t: Tx) -> list[OrphanedLeases]:
    """Return the leases of dead owners; the next owner of each conversation takes it over."""
    held = t.fetch_map(
        "SELECT owner, count(*) FROM lease WHERE owner IS NOT NULL GROUP BY owner ORDER BY owner"
    )
    return [
        OrphanedLeases(owner=owner, conversations=count)
        for owner, count in held.items()
        if not t.is_alive(owner)
    ]


class ServerInfo(Record):
    """PostgreSQL server and its durability settings."""

    version: str
    #: Bytes of the database.
    size: int
    #: A commit waits until it is on disk.
    syncs: bool
    #: Names of the synchronous stand-bys; empty if it waits for none.
    standbys: str


def read_server_info(t: Tx) -> ServerInfo:
    """Return the facts about the server; PostgreSQL only."""
    ((version, size, syncs, standbys),) = t.fetch_all(
        """
        SELECT current_setting('server_version'), pg_database_size(current_database()),
               current_setting('fsync'), current_setting('synchronous_standby_names')
        """
    )
    return ServerInfo(version=version, size=size, syncs=syncs == "on", standbys=standbys)
