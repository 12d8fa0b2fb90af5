"""What a store must not take along when it begins again somewhere else, or at an earlier time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.store.contract import Tx


@dataclass(frozen=True, kw_only=True, slots=True)
class Begun:
    """What whoever opens the store next will do first."""

    #: Turns that were under way, and go on.
    running: int
    #: Deliveries that may have arrived.
    unknown: int


def let_go(t: Tx, *, later: bool) -> Begun:
    """
    Forget the processes that had the store: their leases, locks and clients.

    ``later``: the store has gone on since, and what it had not delivered then may have been
    delivered: each such delivery is ``unknown`` now, to be reconciled or marked as a repeat.
    """
    # The fence rises as at any change of owner, so that nobody writes who held it.
    t.run(
        """
        UPDATE lease SET owner = NULL, expires_at = NULL, fence = fence + 1
        WHERE owner IS NOT NULL
        """
    )
    t.run("DELETE FROM owner")
    t.run("DELETE FROM client")
    t.run("DELETE FROM lock")
    unknown = _doubt_deliveries(t) if later else 0
    row = t.one("SELECT count(*) FROM turn WHERE state = 'running'")
    assert row is not None
    return Begun(running=row[0], unknown=unknown)


def _doubt_deliveries(t: Tx) -> int:
    t.run(
        """
        UPDATE delivery_chunk SET state = 'unknown'
        WHERE state IN ('pending', 'sending') AND delivery_id IN (
            SELECT id FROM delivery WHERE state IN ('pending', 'sending')
        )
        """
    )
    # Without an attempt: parts that are yet to be made of it are in doubt as well.
    return t.run(
        """
        UPDATE delivery
        SET state = 'unknown', owner = NULL, claim = NULL, attempts = 0, updated_at = $1
        WHERE state IN ('pending', 'sending')
        """,
        t.now,
    )


#: What fills itself again, or says who was there: a store with rows in no other table is empty.
_PASSING = ("client", "hold", "hook_mark", "lock", "owner", "setting")


def is_empty(counts: dict[str, int]) -> bool:
    """Whether nobody would miss a store with so many rows in each table."""
    return not any(count for table, count in counts.items() if table not in _PASSING)
