"""Parser of server-sent events with any line end, split and order of fields."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["SseEvent", "SseParser", "encode_event"]

_LINE_END = re.compile(rb"\r\n|\r|\n")


class SseEvent(NamedTuple):
    """One event; its data may not be JSON."""

    name: str | None
    data: str


class SseParser:
    """Parser of events from bytes in any pieces."""

    def __init__(self) -> None:
        self._rest = b""
        self._name: str | None = None
        self._data: list[str] = []
        self._has_started = False

    def feed_bytes(self, piece: bytes) -> list[SseEvent]:
        """Return the events that are complete."""
        buffer = self._rest + piece
        if not self._has_started:
            if len(buffer) < 3 and b"\xef\xbb\xbf".startswith(buffer):
                self._rest = buffer
                return []
            buffer, self._has_started = buffer.removeprefix(b"\xef\xbb\xbf"), True
        # A carriage return at the end may be the first half of a line end.
        held = b"\r" if buffer.endswith(b"\r") else b""
        *lines, rest = _LINE_END.split(buffer[: len(buffer) - len(held)])
        self._rest = rest + held
        return [event for line in lines for event in self._read_line(line)]

    def flush_events(self) -> list[SseEvent]:
        """Return the events that the end of the body completes: the last needs no blank line."""
        line, self._rest = self._rest.rstrip(b"\r"), b""
        return [*self._read_line(line), *self._read_line(b"")]

    def _read_line(self, raw: bytes) -> list[SseEvent]:
        line = raw.decode("utf-8", "surrogateescape")
        if not line.strip():
            event = SseEvent(self._name, "\n".join(self._data))
            self._name, self._data = None, []
            # A name, an id or a comment alone is not an event.
            return [event] if event.data.strip() else []
        if line.lstrip()[0] in "{[":
            # Plain JSON, one object per line.
            return [SseEvent(None, line)]
        field, _, value = line.partition(":")
        match field.strip():
            case "data":
                self._data.append(value.removeprefix(" "))
            case "event":
                self._name = value.strip() or None
            case _:
                pass
        return []


def encode_event(data: bytes, name: str | None = None) -> bytes:
    """Return one event as bytes."""
    return (
        b"data: %b\n\n" % data
        if name is None
        else b"event: %b\ndata: %b\n\n" % (name.encode(), data)
    )
