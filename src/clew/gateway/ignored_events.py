"""What a channel passes over on purpose is logged once of each kind."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import structlog

from clew.engine.log_throttle import LogThrottle

if TYPE_CHECKING:
    from clew.core.chat import IgnoredEvent

log = structlog.get_logger(__name__)


class IgnoredEvents:
    """Logs what a channel passes over, once of each kind."""

    def __init__(self, channel: str) -> None:
        self._channel, self._throttle = channel, LogThrottle(interval=math.inf)

    def log(self, ignored: IgnoredEvent) -> None:
        """Log that something was passed over."""
        if self._throttle.is_due(ignored.kind):
            log.debug("passed_over", channel=self._channel, kind=ignored.kind)
