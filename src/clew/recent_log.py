"""The last records of this process's log, kept in memory for the people who operate it."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final

from clew.core.text import truncate_text
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Records that are kept, and characters of each.
MAX_RECORDS: Final = 2_000
MAX_LENGTH: Final = 4_000
#: From the least to the most severe.
LEVELS: Final = ("debug", "info", "warning", "error", "critical")


class LogRecord(Record):
    """A record of the log, from which secrets were removed."""

    #: Counts from 1 since the process started, without gaps.
    number: int
    at: str
    level: str
    event: str
    #: The other fields as JSON, in one line.
    detail: str


class RecentLog:
    """The newest records; the oldest one goes when there are too many. Thread-safe."""

    def __init__(self, most: int = MAX_RECORDS) -> None:
        self._records: deque[LogRecord] = deque(maxlen=most)
        self._last = 0
        self._lock = threading.Lock()

    def add(self, *, at: str, level: str, event: str, detail: str) -> None:
        """Keep a record; texts that are too long lose their end."""
        with self._lock:
            self._last += 1
            self._records.append(
                LogRecord(
                    number=self._last,
                    at=at,
                    level=level,
                    event=truncate_text(event, MAX_LENGTH),
                    detail=truncate_text(detail, MAX_LENGTH),
                )
            )

    def read(self, *, after: int, level: str, limit: int) -> Sequence[LogRecord]:
        """Return the newest records after a number that are at least as severe, oldest first."""
        least = LEVELS.index(level)
        with self._lock:
            found = [
                one for one in self._records if one.number > after and _rank(one.level) >= least
            ]
        return found[-limit:]

    @property
    def last_number(self) -> int:
        """Return the number of the newest record; 0 before the first."""
        return self._last


def _rank(level: str) -> int:
    return LEVELS.index(level) if level in LEVELS else LEVELS.index("error")


#: The process has one log: what configures it fills this, and operations read it.
RECENT_LOG: Final = RecentLog()
