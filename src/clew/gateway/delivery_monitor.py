"""Delivery health of one channel: failures are counted here and reported once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from clew import wording
from clew.core.health import DeliveryHealth, DeliveryLimits

if TYPE_CHECKING:
    from clew.engine.deliveries import DeliveryQueue

log = structlog.get_logger(__name__)


class DeliveryMonitor:
    """Tracks the deliveries of one channel across all its connections."""

    def __init__(self, deliveries: DeliveryQueue, channel: str, limits: DeliveryLimits) -> None:
        self._deliveries, self._channel, self._limits = deliveries, channel, limits
        self.health = DeliveryHealth()
        #: Consecutive failures, all failures, and abandoned deliveries.
        self._failures = self._failed = self._given_up = 0
        self._error: str | None = None

    def record_success(self) -> None:
        """Count a chunk that arrived."""
        self._failures, self._error = 0, None

    def record_failure(self, error: str) -> None:
        """Count a failed attempt; throttling is no failure."""
        self._failures += 1
        self._failed += 1
        self._error = error
        self._update_health(self.health.waiting, self.health.oldest)

    def record_abandoned(self) -> None:
        """Count a delivery that will never arrive."""
        self._given_up += 1

    async def check_backlog(self, platform: str, account: str | None) -> None:
        """
        Check the backlog in the store, whichever process stored it.

        :raises StoreError: if the store cannot be read
        """
        found = (await self._deliveries.read_backlogs()).get((platform, account))
        if found is None:
            # Nothing is pending: abandoned deliveries are dead letters, no failures any more.
            self._failures = 0
            self._update_health(0, None)
            return
        self._error = self._error or wording.describe_note(found.error)
        self._update_health(found.waiting, found.oldest)

    def _update_health(self, waiting: int, oldest: datetime | None) -> None:
        now = datetime.now(UTC)
        failing = self._limits.is_exceeded(failures=self._failures, oldest=oldest, now=now)
        self._log_transition(failing, waiting, oldest, now)
        self.health = DeliveryHealth(
            waiting=waiting,
            oldest=oldest,
            failed=self._failed,
            given_up=self._given_up,
            failing=failing,
            error=self._error if failing else None,
        )

    def _log_transition(
        self, failing: bool, waiting: int, oldest: datetime | None, now: datetime
    ) -> None:
        if failing == self.health.failing:
            return
        if not failing:
            log.info("deliveries_recovered", channel=self._channel)
            return
        log.error(
            "deliveries_failing",
            channel=self._channel,
            waiting=waiting,
            failures=self._failures,
            oldest_seconds=None if oldest is None else round((now - oldest).total_seconds()),
            error=self._error,
            look="clew deliveries list --all",
        )
