"""How the deliveries of a channel fare: counted here, and told once when they fail."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from clew.core.health import DeliveryHealth, DeliveryLimits

if TYPE_CHECKING:
    from clew.engine.deliveries import DeliveryQueue

log = structlog.get_logger(__name__)


class DeliveryMonitor:
    """Watches over the deliveries of one channel, over all its connections."""

    def __init__(self, deliveries: DeliveryQueue, channel: str, limits: DeliveryLimits) -> None:
        self._deliveries, self._channel, self._limits = deliveries, channel, limits
        self.health = DeliveryHealth()
        #: Tries in a row that failed, all that failed, and what was given up.
        self._failures = self._failed = self._given_up = 0
        self._error: str | None = None

    def delivered(self) -> None:
        """Count a part that has arrived."""
        self._failures, self._error = 0, None

    def failed(self, error: str) -> None:
        """Count a try that failed; a wait that the platform asks for is none."""
        self._failures += 1
        self._failed += 1
        self._error = error
        self._update(self.health.waiting, self.health.oldest)

    def gave_up(self) -> None:
        """Count a delivery that will never arrive."""
        self._given_up += 1

    async def look(self, platform: str, account: str | None) -> None:
        """
        Look at what waits in the store, whoever stored it.

        :raises StoreError: if the store cannot be read
        """
        found = (await self._deliveries.read_backlogs()).get((platform, account))
        if found is None:
            # Nothing waits: what was given up lately is a dead letter, and no failure any more.
            self._failures = 0
            self._update(0, None)
            return
        self._error = self._error or found.error
        self._update(found.waiting, found.oldest)

    def _update(self, waiting: int, oldest: datetime | None) -> None:
        now = datetime.now(UTC)
        failing = self._limits.is_exceeded(failures=self._failures, oldest=oldest, now=now)
        self._tell(failing, waiting, oldest, now)
        self.health = DeliveryHealth(
            waiting=waiting,
            oldest=oldest,
            failed=self._failed,
            given_up=self._given_up,
            failing=failing,
            error=self._error if failing else None,
        )

    def _tell(self, failing: bool, waiting: int, oldest: datetime | None, now: datetime) -> None:
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
