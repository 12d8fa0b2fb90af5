"""Owners: records of the processes that opened the store; locks prove that they live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clew.clock import from_millis
from clew.core.ids import OwnerId

if TYPE_CHECKING:
    from datetime import datetime

    from clew.store.contract import Row, Tx

_RETENTION_MS = 7 * 24 * 3600 * 1000
_OWNER: Final = "SELECT id, host, pid, role, version, started_at FROM owner"


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnerRecord:
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
    held = t.fetch_all(
        """
        UPDATE lease SET owner = NULL, expires_at = NULL WHERE owner = $1 RETURNING conversation_id
        """,
        owner,
    )
    for row in held:
        t.notify(row[0])
    t.execute("UPDATE owner SET ended_at = $2 WHERE id = $1 AND ended_at IS NULL", owner, t.now)


def list_lost_owners(t: Tx) -> list[OwnerId]:
    """Return the processes that started long ago, never ended cleanly, and are dead."""
    found = t.fetch_all(
        "SELECT id FROM owner WHERE ended_at IS NULL AND started_at < $1 ORDER BY id",
        t.now - _RETENTION_MS,
    )
    return [OwnerId(row[0]) for row in found if not t.is_alive(row[0])]


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
    found = t.fetch_all(f"{_OWNER} WHERE ended_at IS NULL ORDER BY started_at, id")
    return [_row_to_record(row) for row in found if t.is_alive(row[0])]


def find_owner(t: Tx, owner: str) -> OwnerRecord | None:
    """Return a process by its id; ``None`` if it is unknown."""
    row = t.fetch_one(f"{_OWNER} WHERE id = $1", owner)
    return None if row is None else _row_to_record(row)


def _row_to_record(row: Row) -> OwnerRecord:
    return OwnerRecord(
        id=OwnerId(row[0]),
        host=row[1],
        pid=row[2],
        role=row[3],
        version=row[4],
        started_at=from_millis(row[5]),
    )
