"""Gauges of open work, for monitors that poll often."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from clew.core.ids import OwnerId
    from clew.store.contract import Tx


class Gauges(Record):
    """Current counts of open work."""

    #: Open inputs in all conversations.
    waiting: int
    #: Conversations whose lease this process holds.
    leases: int
    #: Turns without an outcome, in any process.
    unfinished: int


def read_gauges(t: Tx, *, me: OwnerId) -> Gauges:
    """Return the gauges; reads only indexes of open rows, so the log's length does not matter."""
    return Gauges(
        waiting=t.fetch_value("SELECT count(*) FROM inbox WHERE outcome IS NULL"),
        leases=t.fetch_value("SELECT count(*) FROM lease WHERE owner = $1", me),
        unfinished=t.fetch_value("SELECT count(*) FROM turn WHERE state <> 'done'"),
    )
