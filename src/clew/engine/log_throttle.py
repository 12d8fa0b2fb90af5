"""A throttle for repeated log lines: one a minute."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from structlog.typing import FilteringBoundLogger

    from clew.errors import StoreError

#: Seconds between two equal lines.
INTERVAL = 60.0
#: Maximum number of remembered lines; the oldest is dropped.
_MAX_SUBJECTS = 1000


class LogThrottle:
    """A rate limit per subject for log lines."""

    def __init__(
        self, *, interval: float = INTERVAL, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval, self._monotonic = interval, monotonic
        self._last: dict[Hashable, float] = {}

    def is_due(self, subject: Hashable) -> bool:
        """Return whether ``subject`` was not logged within the interval; record it."""
        now = self._monotonic()
        last = self._last.get(subject)
        if last is not None and now - last < self._interval:
            return False
        self._last.pop(subject, None)
        self._last[subject] = now
        if len(self._last) > _MAX_SUBJECTS:
            del self._last[next(iter(self._last))]
        return True

    def warn_store_failure(
        self, log: FilteringBoundLogger, event: str, error: StoreError, **fields: object
    ) -> None:
        """Log a store failure unless it was logged within the interval."""
        if self.is_due((event, str(error))):
            log.warning(event, error=str(error), **fields)
