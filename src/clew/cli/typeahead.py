"""Type-ahead: bytes of a terminal in, lines out."""

from __future__ import annotations

import os
import select
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from clew.core.escapes import strip_sequences
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Generator


class TypedLine(Record):
    """A line that was ended with Enter."""

    text: str
    #: True if all of it was typed, without a paste.
    by_hand: bool
    #: True if it was started after the last ``TypeaheadParser.mark_boundary``.
    fresh: bool


class TypeaheadParser:
    """
    Parser of what is typed while no prompt is open.

    Every line is a message; a paste that the terminal marks belongs to one line, whatever
    line ends it has.
    """

    _PASTE_START: Final = b"\x1b[200~"
    _PASTE_END: Final = b"\x1b[201~"

    def __init__(self, encoding: str = "utf-8") -> None:
        self._encoding = encoding
        self._rest = b""
        self._line = b""
        self._pasting = False
        self._pasted = False
        self._fresh = True

    def mark_boundary(self) -> None:
        """Mark this moment: a line already started counts as older."""
        self._fresh = not (self._rest or self._line or self._pasting)

    def feed_bytes(self, data: bytes) -> list[TypedLine]:
        """Add bytes, and return the lines that are complete now."""
        self._rest += data
        found: list[TypedLine] = []
        while True:
            mark = self._PASTE_END if self._pasting else self._next_delimiter()
            head, mark, rest = self._rest.partition(mark)
            if not mark:
                return found
            self._line, self._rest = self._line + head, rest
            if mark == b"\n":
                found.append(self._take_line())
            else:
                self._pasting = mark == self._PASTE_START
                self._pasted = True

    def _take_line(self) -> TypedLine:
        line = TypedLine(
            text=self._decode_line(self._line), by_hand=not self._pasted, fresh=self._fresh
        )
        self._line, self._pasted, self._fresh = b"", False, True
        return line

    def _next_delimiter(self) -> bytes:
        line_end, paste = self._rest.find(b"\n"), self._rest.find(self._PASTE_START)
        begins_first = paste >= 0 and (line_end < 0 or paste < line_end)
        return self._PASTE_START if begins_first else b"\n"

    def take_unfinished(self) -> str:
        """Return the unfinished line, and forget it."""
        rest, self._rest, self._line = self._line + self._rest, b"", b""
        self._pasting = self._pasted = False
        self._fresh = True
        return self._decode_line(rest)

    def _decode_line(self, line: bytes) -> str:
        return strip_sequences(line.decode(self._encoding, errors="replace"))


def read_pending(descriptor: int) -> bytes:
    """Return everything typed so far, also an unfinished line, without waiting."""
    found: list[bytes] = []
    with _unbuffered_input(descriptor):
        while select.select([descriptor], [], [], 0)[0]:
            try:
                data = os.read(descriptor, 65536)
            except OSError:  # the terminal is gone; the next wait notices it
                break
            if not data:
                break
            found.append(data)
    return b"".join(found)


@contextmanager
def _unbuffered_input(descriptor: int) -> Generator[None]:
    """Let the terminal return input before the line is ended."""
    if sys.platform == "win32" or not os.isatty(descriptor):
        yield
        return
    import termios  # noqa: PLC0415  (not on Windows)

    before = termios.tcgetattr(descriptor)
    now = termios.tcgetattr(descriptor)
    now[3] &= ~termios.ICANON
    now[6][termios.VMIN] = now[6][termios.VTIME] = 0
    termios.tcsetattr(descriptor, termios.TCSANOW, now)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
