"""Gauges: how much there is to do, as numbers that a monitor asks for again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.core.ids import OwnerId
    from clew.store.contract import Tx


@dataclass(frozen=True, kw_only=True, slots=True)
class Gauges:
    """How it stands now."""

    #: Inputs that wait, in all conversations.
    waiting: int
    #: Conversations that this process works on.
    leases: int
    #: Turns that have no outcome yet, whoever runs them.
    unfinished: int


def gauges(t: Tx, *, me: OwnerId) -> Gauges:
    """Reads indexes of what is open only, so it costs the same however long the log is."""
    return Gauges(
        waiting=_count(t.one("SELECT count(*) FROM inbox WHERE outcome IS NULL")),
        leases=_count(t.one("SELECT count(*) FROM lease WHERE owner = $1", me)),
        unfinished=_count(t.one("SELECT count(*) FROM turn WHERE state <> 'done'")),
    )


def _count(row: tuple[int, ...] | None) -> int:
    assert row is not None
    return row[0]
