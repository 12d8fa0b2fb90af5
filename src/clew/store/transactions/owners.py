"""Owners: the processes that opened the store, for people to read; locks prove their life."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clew.clock import from_millis
from clew.core.ids import OwnerId

if TYPE_CHECKING:
    from datetime import datetime

    from clew.store.contract import Row, Tx

_FORGOTTEN_AFTER = 7 * 24 * 3600 * 1000
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
    def place(self) -> str:
        """Which process it is, for people."""
        return f"{self.role}, pid {self.pid} on {self.host}"


def enrol(t: Tx, owner: OwnerId, *, host: str, pid: int, role: str, version: str) -> None:
    """Record a process that is about to write."""
    t.run("DELETE FROM owner WHERE ended_at < $1", t.now - _FORGOTTEN_AFTER)
    t.run(
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


def sign_off(t: Tx, owner: OwnerId) -> None:
    """Record that a process ended in order; what it still holds is free for the next owner."""
    held = t.all(
        """
        UPDATE lease SET owner = NULL, expires_at = NULL WHERE owner = $1 RETURNING conversation_id
        """,
        owner,
    )
    for row in held:
        t.wake(row[0])
    t.run("UPDATE owner SET ended_at = $2 WHERE id = $1 AND ended_at IS NULL", owner, t.now)


def lost_owners(t: Tx) -> list[OwnerId]:
    """Processes that began long ago, never signed off, and do not live any more."""
    found = t.all(
        "SELECT id FROM owner WHERE ended_at IS NULL AND started_at < $1 ORDER BY id",
        t.now - _FORGOTTEN_AFTER,
    )
    return [OwnerId(row[0]) for row in found if not t.alive(row[0])]


def end_lost(t: Tx) -> int:
    """Record that those have ended; how many. What they hold is taken over as before."""
    return sum(
        t.run("UPDATE owner SET ended_at = $2 WHERE id = $1 AND ended_at IS NULL", owner, t.now)
        for owner in lost_owners(t)
    )


def living_owners(t: Tx) -> list[OwnerRecord]:
    """The processes that have the store open now and prove that they live."""
    found = t.all(f"{_OWNER} WHERE ended_at IS NULL ORDER BY started_at, id")
    return [_record(row) for row in found if t.alive(row[0])]


def get_owner(t: Tx, owner: str) -> OwnerRecord | None:
    """A process by its id; ``None`` if it is not known any more."""
    row = t.one(f"{_OWNER} WHERE id = $1", owner)
    return None if row is None else _record(row)


def _record(row: Row) -> OwnerRecord:
    return OwnerRecord(
        id=OwnerId(row[0]),
        host=row[1],
        pid=row[2],
        role=row[3],
        version=row[4],
        started_at=from_millis(row[5]),
    )
