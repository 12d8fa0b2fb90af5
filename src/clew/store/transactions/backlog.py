"""Counts of unfinished and dead-lettered deliveries, for monitors and diagnosis."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from clew.clock import from_millis
from clew.core.route import Route
from clew.record import Record

if TYPE_CHECKING:
    from datetime import datetime

    from clew.store.contract import Tx

#: A platform, and the account's name in routes.
PlatformAccount = tuple[str, str | None]


class DeliveryBacklog(Record):
    """Unfinished deliveries of one account on a platform."""

    waiting: int
    #: When the oldest was stored.
    oldest: datetime
    #: The highest number of attempts, and the error of one of them.
    attempts: int
    error: str | None


class DeliveryCounts(Record):
    """Deliveries of one channel that did not arrive."""

    waiting: int
    #: When the oldest that waits was stored.
    oldest: datetime | None
    #: Those that were given up.
    failed: int


def count_by_channel(t: Tx) -> dict[str, DeliveryCounts]:
    """Return the undelivered messages by the NAME of their channel."""
    found: dict[str, DeliveryCounts] = {}
    for key, waiting, oldest, failed in t.fetch_all(
        """
        SELECT route, sum(CASE WHEN state = 'failed' THEN 0 ELSE 1 END),
               min(CASE WHEN state = 'failed' THEN NULL ELSE created_at END),
               sum(CASE WHEN state = 'failed' THEN 1 ELSE 0 END)
        FROM delivery WHERE state <> 'delivered' GROUP BY route
        """
    ):
        name = Route.parse(key).channel
        before = found.get(name)
        at = None if oldest is None else from_millis(oldest)
        found[name] = DeliveryCounts(
            waiting=int(waiting) + (0 if before is None else before.waiting),
            oldest=at if before is None else min(filter(None, (at, before.oldest)), default=None),
            failed=int(failed) + (0 if before is None else before.failed),
        )
    return found


def backlogs_by_account(t: Tx) -> dict[PlatformAccount, DeliveryBacklog]:
    """Return the unfinished deliveries by account; accounts without any are left out."""
    found: dict[PlatformAccount, DeliveryBacklog] = {}
    rows = t.fetch_all(
        """
        SELECT route, count(*), min(created_at), max(attempts), max(error) FROM delivery
        WHERE state NOT IN ('delivered', 'failed') GROUP BY route
        """
    )
    for key, waiting, oldest, attempts, error in rows:
        new = DeliveryBacklog(
            waiting=waiting, oldest=from_millis(oldest), attempts=attempts, error=error
        )
        front = _account_of_route(key)
        found[front] = _merge_backlogs(found[front], new) if front in found else new
    return found


def _merge_backlogs(one: DeliveryBacklog, other: DeliveryBacklog) -> DeliveryBacklog:
    return DeliveryBacklog(
        waiting=one.waiting + other.waiting,
        oldest=min(one.oldest, other.oldest),
        attempts=max(one.attempts, other.attempts),
        error=one.error or other.error,
    )


def count_dead_letters(t: Tx, *, since: int) -> dict[PlatformAccount, int]:
    """Return the number of dead letters since a time (ms), by account."""
    found: Counter[PlatformAccount] = Counter()
    for key, count in t.fetch_all(
        """
        SELECT route, count(*) FROM delivery
        WHERE state <> 'delivered' AND state = 'failed' AND attempts > 0 AND updated_at >= $1
        GROUP BY route
        """,
        since,
    ):
        found[_account_of_route(key)] += count
    return dict(found)


def _account_of_route(key: str) -> PlatformAccount:
    route = Route.parse(key)
    return route.platform, route.account
