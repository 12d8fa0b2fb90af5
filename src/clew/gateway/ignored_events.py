"""Logging of events that a channel ignores on purpose, once per kind."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import structlog

from clew.engine.log_throttle import LogThrottle

if TYPE_CHECKING:
    from clew.core.channel_events import IgnoredEvent

log = structlog.get_logger(__name__)


class IgnoredEventLog:
    """Logs the events that a channel ignores, once per kind."""

    def __init__(self, channel: str) -> None:
        self._channel, self._throttle = channel, LogThrottle(interval=math.inf)

    def log_once(self, ignored: IgnoredEvent) -> None:
        """Log an ignored event, unless its kind has been logged."""
        if self._throttle.is_due(ignored.kind):
            log.debug("passed_over", channel=self._channel, kind=ignored.kind)
