"""Guard against accidental decisions by keys that were meant for something else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds without typing before a decision is accepted.
MIN_PAUSE: Final = 0.7


class TypingGuard:
    """Guard that ignores decision keys while the user is typing."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Create the guard; ``clock`` returns seconds from any start."""
        self._clock = clock
        self._last_key = clock()

    def note_key(self) -> None:
        """Note a key that decides nothing."""
        self._last_key = self._clock()

    @property
    def is_armed(self) -> bool:
        return self._clock() - self._last_key >= MIN_PAUSE
