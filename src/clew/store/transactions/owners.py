"""Owners: records of the processes that opened the store; locks prove that they live."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.clock import from_millis
from clew.record import Record
from clew.store.records import RecordQuery

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.ids import OwnerId
    from clew.store.contract import Tx

_RETENTION_MS = 7 * 24 * 3600 * 1000


class OwnerRecord(Record):
    id: OwnerId
    host: str
    pid: int
    #: serve, chat …
    role: str
    version: str
    started_at: datetime

    @property
    def description(self) -> str:
        """Return a description of the process for people."""
        return f"{self.role}, pid {self.pid} on {self.host}"


_OWNER = RecordQuery(
    OwnerRecord,
    "SELECT id, host, pid, role, version, started_at FROM owner",
    {"started_at": from_millis},
)


def register_owner(t: Tx, owner: OwnerId, *, host: str, pid: int, role: str, version: str) -> None:
    """Record a process that is about to write."""
    t.execute("DELETE FROM owner WHERE ended_at < $1", t.now - _RETENTION_MS)
    t.execute(
        """
        INSERT INTO owner (id, host, pid, role, version, started_at) VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (id) DO NOTHING
        """,
        owner,
        host,
        pid,
        role,
        version,
        t.now,
    )


def mark_owner_ended(t: Tx, owner: OwnerId) -> None:
    """Record that a process ended cleanly, and release its leases."""
    held = t.fetch_column(
        """
        UPDATE lease SET owner = NULL, expires_at = NULL WHERE owner = $1 RETURNING conversation_id
        """,
        owner,
    )
    for conversation in held:
        t.notify(conversation)
    t.execute("UPDATE owner SET ended_at = $2 WHERE id = $1 AND ended_at IS NULL", owner, t.now)


def list_lost_owners(t: Tx) -> list[OwnerId]:
    """Return the processes that started long ago, never ended cleanly, and are dead."""
    found = t.fetch_column(
        "SELECT id FROM owner WHERE ended_at IS NULL AND started_at < $1 ORDER BY id",
        t.now - _RETENTION_MS,
    )
    return [owner for owner in found if not t.is_alive(owner)]


def end_lost_owners(t: Tx) -> int:
    """
    Record that lost processes have ended, and return their count.

    Their leases are taken over as usual.
    """
    return sum(
        t.execute("UPDATE owner SET ended_at = $2 WHERE id = $1 AND ended_at IS NULL", owner, t.now)
        for owner in list_lost_owners(t)
    )


def list_living_owners(t: Tx) -> list[OwnerRecord]:
    """Return the living processes that have the store open."""
    found = _OWNER.fetch_all(t, "WHERE ended_at IS NULL ORDER BY started_at, id")
    return [owner for owner in found if t.is_alive(owner.id)]


def find_owner(t: Tx, owner: str) -> OwnerRecord | None:
    """Return a process by its id; ``None`` if it is unknown."""
    return _OWNER.fetch_one(t, "WHERE id = $1", owner)
