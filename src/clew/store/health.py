"""How a store is, for whoever diagnoses it: reads only, and little of each table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.clock import from_millis
from clew.store.search import BEHIND, is_damaged

if TYPE_CHECKING:
    from datetime import datetime

    from clew.store.contract import Tx


@dataclass(frozen=True, kw_only=True, slots=True)
class Clocks:
    #: The time of the database host.
    now: datetime
    #: When the newest entry was stored, by that clock.
    newest: datetime | None


def clocks(t: Tx) -> Clocks:
    """The time by the store, and by what was last said in it."""
    row = t.one("SELECT created_at FROM entry ORDER BY n DESC LIMIT 1")
    return Clocks(now=from_millis(t.now), newest=None if row is None else from_millis(row[0]))


def journal_mode(t: Tx) -> str:
    """Return SQLite's journal mode: ``wal``, or ``delete`` for a rollback journal."""
    row = t.one("PRAGMA journal_mode")
    assert row is not None
    return row[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchState:
    damaged: bool
    #: Messages that are not in the index; counted up to ``BEHIND``, where search refuses.
    behind: int

    @property
    def refuses(self) -> bool:
        return self.damaged or self.behind >= BEHIND


def search_state(t: Tx) -> SearchState:
    """How far the search index is."""
    damaged = is_damaged(t)
    return SearchState(damaged=damaged, behind=0 if damaged else t.index.behind(BEHIND))


@dataclass(frozen=True, kw_only=True, slots=True)
class Stranded:
    """Leases whose owner died before it let them go."""

    owner: str
    conversations: int


def stranded(t: Tx) -> list[Stranded]:
    """What dead owners hold; whoever works on such a conversation next takes it over."""
    held = t.all(
        "SELECT owner, count(*) FROM lease WHERE owner IS NOT NULL GROUP BY owner ORDER BY owner"
    )
    return [Stranded(owner=row[0], conversations=row[1]) for row in held if not t.alive(row[0])]


@dataclass(frozen=True, kw_only=True, slots=True)
class Server:
    """A PostgreSQL server, and what it promises."""

    version: str
    #: Bytes of the database.
    size: int
    #: Whether a commit waits until it is on disk.
    syncs: bool
    #: Names of the synchronous stand-bys; empty if it waits for none.
    standbys: str


def server(t: Tx) -> Server:
    """Only on PostgreSQL."""
    row = t.one(
        """
        SELECT current_setting('server_version'), pg_database_size(current_database()),
               current_setting('fsync'), current_setting('synchronous_standby_names')
        """
    )
    assert row is not None
    return Server(version=row[0], size=row[1], syncs=row[2] == "on", standbys=row[3])
