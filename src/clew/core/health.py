"""How a channel is, for those who look after it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


class ChannelState(enum.Enum):
    CONNECTING = "connecting"
    CONNECTED = "connected"
    DEGRADED = "degraded"  #: its connection failed: it is tried again
    STANDBY = "standby"  #: another process runs it
    REFUSED = "refused"  #: the platform or its settings do not let it: somebody has to do something


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryLimits:
    """How much may go wrong with a channel's deliveries before somebody is told."""

    #: Tries in a row that fail.
    failures: int = 5
    #: How long a message waits.
    after: timedelta = timedelta(minutes=5)

    def exceeded(self, *, failures: int, oldest: datetime | None, now: datetime) -> bool:
        """Return whether so many failures in a row, or a message that is so old, are too much."""
        late = oldest is not None and now - oldest >= self.after
        return late or failures >= self.failures


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryHealth:
    """How the deliveries of a channel fare."""

    #: What waits, and when the oldest of it was stored.
    waiting: int = 0
    oldest: datetime | None = None
    #: Tries that failed and deliveries that were given up, since the process began.
    failed: int = 0
    given_up: int = 0
    #: A limit is exceeded.
    failing: bool = False
    #: Why, for people.
    error: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelHealth:
    state: ChannelState
    since: datetime
    #: When the platform last answered that there is nothing, or something, new.
    heard_at: datetime | None = None
    #: When something last happened there.
    event_at: datetime | None = None
    #: Why it is not connected, for people.
    error: str | None = None
    deliveries: DeliveryHealth = field(default_factory=DeliveryHealth)

    @property
    def well(self) -> bool:
        """Whether nobody has to look after it."""
        return self.state is not ChannelState.REFUSED and not self.deliveries.failing
