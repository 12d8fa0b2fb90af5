"""How a channel is, for those who look after it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
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
class ChannelHealth:
    state: ChannelState
    since: datetime
    #: When the platform last answered that there is nothing, or something, new.
    heard_at: datetime | None = None
    #: When something last happened there.
    event_at: datetime | None = None
    #: Why it is not connected, for people.
    error: str | None = None
