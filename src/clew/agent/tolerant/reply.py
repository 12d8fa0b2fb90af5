"""What the readers of the three formats have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Habits", "Reader"]


@dataclass(slots=True)
class Habits:
    """What one server was found to do, as long as the process lives."""

    #: Its text begins with thinking, of which only the closing tag is told.
    thinks_first: bool = False


class Reader(Protocol):
    """Reads one reply; yields the events of a proper stream of the format."""

    @property
    def finished(self) -> bool:
        """Whether the reply said why it ended."""
        ...

    def passes(self, data: dict[str, Any]) -> bool:
        """
        Return whether an event may go on as it is: text in the midst of text, and nothing odd.

        Most events are that; the event counts as read then.
        """
        ...

    def event(self, data: dict[str, Any], name: str | None = None) -> Iterator[dict[str, Any]]:
        """
        Yield what an event of the server leads to; ``name`` is that of the event.

        :raises ReplyError: if it tells an error
        """
        ...

    def end(self, *, done: bool) -> Iterator[dict[str, Any]]:
        """Yield the end of the stream, if the reply has ended (``done``: the server said so)."""
        ...

    def whole(self, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """
        Yield the events of a reply that came as one object.

        :raises ReplyError: if it tells an error
        """
        ...
