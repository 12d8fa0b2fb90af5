"""Server-sent events as they come: any line end, any cut, any order of fields."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Event", "EventReader", "encode"]

_LINE_END = re.compile(rb"\r\n|\r|\n")


class Event(NamedTuple):
    """One event; its data may be no JSON."""

    name: str | None
    data: str


class EventReader:
    """Reads events from bytes that come in any pieces."""

    def __init__(self) -> None:
        self._rest = b""
        self._name: str | None = None
        self._data: list[str] = []
        self._begun = False

    def feed(self, piece: bytes) -> list[Event]:
        """Return the events that are complete."""
        buffer = self._rest + piece
        if not self._begun:
            if len(buffer) < 3 and b"\xef\xbb\xbf".startswith(buffer):
                self._rest = buffer
                return []
            buffer, self._begun = buffer.removeprefix(b"\xef\xbb\xbf"), True
        # A carriage return at the end may be half of a line end.
        held = b"\r" if buffer.endswith(b"\r") else b""
        *lines, rest = _LINE_END.split(buffer[: len(buffer) - len(held)])
        self._rest = rest + held
        return [event for line in lines for event in self._line(line)]

    def end(self) -> list[Event]:
        """Return what the end of the body completes: the last event needs no blank line."""
        line, self._rest = self._rest.rstrip(b"\r"), b""
        return [*self._line(line), *self._line(b"")]

    def _line(self, raw: bytes) -> list[Event]:
        line = raw.decode("utf-8", "surrogateescape")
        if not line.strip():
            event = Event(self._name, "\n".join(self._data))
            self._name, self._data = None, []
            # A name, an id or a comment alone is no event.
            return [event] if event.data.strip() else []
        if line.lstrip()[0] in "{[":
            # JSON of its own, a line each.
            return [Event(None, line)]
        field, _, value = line.partition(":")
        match field.strip():
            case "data":
                self._data.append(value.removeprefix(" "))
            case "event":
                self._name = value.strip() or None
            case _:
                pass
        return []


def encode(data: bytes, name: str | None = None) -> bytes:
    """Return one event as bytes."""
    return (
        b"data: %b\n\n" % data
        if name is None
        else b"event: %b\ndata: %b\n\n" % (name.encode(), data)
    )
