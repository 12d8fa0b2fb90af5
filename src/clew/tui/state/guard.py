"""Keys that decide something: they count only where they were meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds without typing after which a decision may be made.
PAUSE: Final = 0.7


class TypingGuard:
    """Ignores decisions while somebody is typing: they type on, and mean something else."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` tells seconds, from any beginning."""
        self._clock = clock
        self._typed = clock()

    def typed(self) -> None:
        """A key was pressed that decides nothing here."""
        self._typed = self._clock()

    @property
    def is_armed(self) -> bool:
        return self._clock() - self._typed >= PAUSE
