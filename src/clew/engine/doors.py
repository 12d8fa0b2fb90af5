"""Doors: where other programs hand something in over HTTP, each for the part that opened it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping


@dataclass(frozen=True, kw_only=True, slots=True)
class Knock:
    """A request, as it came; nobody has looked at who sent it."""

    #: Names in lower case.
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What whoever knocked is told."""

    #: Of HTTP: 202 once it is stored.
    status: int
    code: str = ""
    message: str = ""
    #: Whether sending the same again is safe and may help.
    again: bool = False


UNKNOWN = Answer(status=404, code="not_found", message="there is no such hook")
SHUT = Answer(
    status=503,
    code="not_ready",
    message="nothing was stored: send it again in a moment",
    again=True,
)


class Doors:
    """The doors of one process, by name."""

    def __init__(self) -> None:
        self._doors: dict[str, Callable[[Knock], Awaitable[Answer]] | None] = {}

    def add(self, name: str) -> None:
        """There is such a door, though nobody is behind it yet."""
        self._doors.setdefault(name, None)

    def open(self, name: str, answer: Callable[[Knock], Awaitable[Answer]]) -> None:
        """From now on ``answer`` decides what becomes of what is handed in."""
        self._doors[name] = answer

    def shut(self, name: str) -> None:
        """Nobody is behind it any more; whoever knocks is to come again."""
        self._doors[name] = None

    async def knock(self, name: str, knock: Knock) -> Answer:
        """Hand something in."""
        if name not in self._doors:
            return UNKNOWN
        answer = self._doors[name]
        return SHUT if answer is None else await answer(knock)
