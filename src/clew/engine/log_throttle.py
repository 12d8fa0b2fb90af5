"""Log lines that say the same again and again: once a minute."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from structlog.typing import FilteringBoundLogger

    from clew.errors import StoreError

#: Seconds between two lines that say the same.
INTERVAL = 60.0
#: Different lines that are remembered; the oldest is forgotten.
_MOST = 1000


class LogThrottle:
    """Decides whether a line is due, by what it says."""

    def __init__(
        self, *, interval: float = INTERVAL, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval, self._monotonic = interval, monotonic
        self._last: dict[Hashable, float] = {}

    def is_due(self, subject: Hashable) -> bool:
        """Return whether a line about ``subject`` was not logged within the interval; note it."""
        now = self._monotonic()
        last = self._last.get(subject)
        if last is not None and now - last < self._interval:
            return False
        self._last.pop(subject, None)
        self._last[subject] = now
        if len(self._last) > _MOST:
            del self._last[next(iter(self._last))]
        return True

    def warn(
        self, log: FilteringBoundLogger, event: str, error: StoreError, **fields: object
    ) -> None:
        """Log that the store fails, unless it was logged within the interval."""
        if self.is_due((event, str(error))):
            log.warning(event, error=str(error), **fields)
