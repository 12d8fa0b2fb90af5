"""Common interface of the readers of the three formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ReplyReader", "ServerQuirks"]


@dataclass(slots=True)
class ServerQuirks:
    """Observed deviations of one server, for the lifetime of the process."""

    #: Its text begins with thinking, of which only the closing tag is sent.
    thinks_first: bool = False


class ReplyReader(Protocol):
    """Reader of one reply that yields the events of a valid stream of the format."""

    @property
    def is_finished(self) -> bool:
        """Return whether the reply gave its finish reason."""
        ...

    def try_pass_through(self, data: dict[str, Any]) -> bool:
        """
        Return whether an event may pass unchanged; it then counts as read.

        Most events do: text in the middle of text, without anything unusual.
        """
        ...

    def read_event(self, data: dict[str, Any], name: str | None = None) -> Iterator[dict[str, Any]]:
        """
        Yield the events for an event of the server, whose name is ``name``.

        :raises ReplyError: if it contains an error
        """
        ...

    def finish_stream(self, *, done: bool) -> Iterator[dict[str, Any]]:
        """Yield the end of the stream if the reply has ended (``done``: the server said so)."""
        ...

    def read_whole(self, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """
        Yield the events for a reply that came as one object.

        :raises ReplyError: if it contains an error
        """
        ...
