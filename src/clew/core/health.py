"""Health of channels and their deliveries, for operators."""

from __future__ import annotations

import enum
from dataclasses import field
from datetime import timedelta
from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from datetime import datetime


class ChannelState(enum.Enum):
    CONNECTING = "connecting"
    CONNECTED = "connected"
    DEGRADED = "degraded"  #: its connection failed and is being retried
    STANDBY = "standby"  #: another process runs it
    REFUSED = "refused"  #: refused by the platform or misconfigured: an operator must act


class DeliveryLimits(Record):
    """Limits on delivery failures before an operator is notified."""

    #: Consecutive failed attempts.
    failures: int = 5
    #: Longest time that a message may wait.
    after: timedelta = timedelta(minutes=5)

    def is_exceeded(self, *, failures: int, oldest: datetime | None, now: datetime) -> bool:
        """Return whether the failures in a row or the age of the oldest message exceed it."""
        late = oldest is not None and now - oldest >= self.after
        return late or failures >= self.failures


class DeliveryHealth(Record):
    """Delivery status of a channel."""

    #: Waiting deliveries, and when the oldest was stored.
    waiting: int = 0
    oldest: datetime | None = None
    #: Failed attempts and abandoned deliveries since the process started.
    failed: int = 0
    given_up: int = 0
    #: A limit is exceeded.
    failing: bool = False
    #: The reason, for people.
    error: str | None = None


class PartHealth(Record):
    """Something that a feature depends on, such as a server elsewhere."""

    #: A word, such as ``up``.
    state: str
    #: The reason why it does not work, for people.
    why: str | None = None


class ChannelHealth(Record):
    state: ChannelState
    since: datetime
    #: When the platform last responded, with or without events.
    heard_at: datetime | None = None
    #: When the last event arrived.
    event_at: datetime | None = None
    #: The reason why it is not connected, for people.
    error: str | None = None
    deliveries: DeliveryHealth = field(default_factory=DeliveryHealth)

    @property
    def is_healthy(self) -> bool:
        """Return whether no operator needs to act."""
        return self.state is not ChannelState.REFUSED and not self.deliveries.failing
