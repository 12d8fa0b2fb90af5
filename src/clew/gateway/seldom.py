"""What is logged seldom, however often it happens; the memory for it is bounded."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from clew.core.chat import Ignored

log = structlog.get_logger(__name__)

#: Things that are remembered at the same time; the oldest is forgotten first.
_REMEMBERED = 1_000


class Seldom:
    """Says of each thing whether its time has come again."""

    def __init__(
        self,
        seconds: float = math.inf,
        *,
        remembered: int = _REMEMBERED,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds, self._remembered, self._now = seconds, remembered, now
        self._last: OrderedDict[Hashable, float] = OrderedDict()

    def due(self, thing: Hashable) -> bool:
        """Return whether it was never due, or not for so long; it is due then, and not again."""
        now = self._now()
        last = self._last.get(thing)
        if last is not None and now - last < self._seconds:
            return False
        self._last[thing] = now
        self._last.move_to_end(thing)
        while len(self._last) > self._remembered:
            self._last.popitem(last=False)
        return True


class Passed:
    """Logs what a channel passes over, once of each kind."""

    def __init__(self, channel: str) -> None:
        self._channel, self._kinds = channel, Seldom()

    def over(self, ignored: Ignored) -> None:
        """Log that something was passed over."""
        if self._kinds.due(ignored.kind):
            log.debug("passed_over", channel=self._channel, kind=ignored.kind)
