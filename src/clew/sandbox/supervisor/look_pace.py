"""Pace of looks at a command: rarer while nothing changes."""

from __future__ import annotations

#: Seconds between two looks, while something changes and else.
PERIOD, _QUIET_PERIOD = 0.1, 0.5
#: Looks without a change after which they become rarer.
_QUIET_AFTER = 20


class LookPace:
    """Seconds until the next look, by what the last ones saw."""

    def __init__(self, seen: object) -> None:
        self._seen = seen
        self._quiet_looks = 0

    def note(self, seen: object) -> float:
        """Return the seconds until the next look."""
        self._quiet_looks = self._quiet_looks + 1 if seen == self._seen else 0
        self._seen = seen
        return PERIOD if self._quiet_looks < _QUIET_AFTER else _QUIET_PERIOD
