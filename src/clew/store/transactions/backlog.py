"""How much is still to be delivered, and what was given up: for monitors and diagnosis."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.clock import from_millis
from clew.core.route import Route

if TYPE_CHECKING:
    from datetime import datetime

    from clew.store.contract import Tx

#: A platform, and how routes name the account on it.
Front = tuple[str, str | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Backlog:
    """What waits to be delivered on one account of a platform."""

    waiting: int
    #: When the oldest of it was stored.
    oldest: datetime
    #: How often one of it was tried at most, and what came of one that was.
    attempts: int
    error: str | None


def backlogs(t: Tx) -> dict[Front, Backlog]:
    """Return what waits, by account; accounts where nothing does are left out."""
    found: dict[Front, Backlog] = {}
    rows = t.all(
        """
        SELECT route, count(*), min(created_at), max(attempts), max(error) FROM delivery
        WHERE state NOT IN ('delivered', 'failed') GROUP BY route
        """
    )
    for key, waiting, oldest, attempts, error in rows:
        new = Backlog(waiting=waiting, oldest=from_millis(oldest), attempts=attempts, error=error)
        front = _front(key)
        found[front] = _both(found[front], new) if front in found else new
    return found


def _both(one: Backlog, other: Backlog) -> Backlog:
    return Backlog(
        waiting=one.waiting + other.waiting,
        oldest=min(one.oldest, other.oldest),
        attempts=max(one.attempts, other.attempts),
        error=one.error or other.error,
    )


def given_up(t: Tx, *, since: int) -> dict[Front, int]:
    """Return how many deliveries were tried and given up since then (ms), by account."""
    found: Counter[Front] = Counter()
    for key, count in t.all(
        """
        SELECT route, count(*) FROM delivery
        WHERE state = 'failed' AND attempts > 0 AND updated_at >= $1 GROUP BY route
        """,
        since,
    ):
        found[_front(key)] += count
    return dict(found)


def _front(key: str) -> Front:
    route = Route.parse(key)
    return route.platform, route.account
