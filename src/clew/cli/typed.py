"""Typing ahead: bytes of a terminal in, lines out."""

from __future__ import annotations

import os
import select
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clew.core.escapes import strip_sequences

if TYPE_CHECKING:
    from collections.abc import Generator


@dataclass(frozen=True, kw_only=True, slots=True)
class TypedLine:
    """A line that was ended with Enter."""

    text: str
    #: Whether all of it was typed, and none pasted.
    by_hand: bool
    #: Whether it was begun after ``TypedLines.mark`` was called last.
    fresh: bool


class TypedLines:
    """
    What is typed while nothing asks for it.

    Every line is a message; a paste that the terminal marks as one belongs to one line, whatever
    line ends it has.
    """

    _BEGIN: Final = b"\x1b[200~"
    _END: Final = b"\x1b[201~"

    def __init__(self, encoding: str = "utf-8") -> None:
        self._encoding = encoding
        self._rest = b""
        self._line = b""
        self._pasting = False
        self._pasted = False
        self._fresh = True

    def mark(self) -> None:
        """Take note that a line which was begun by now was begun before this moment."""
        self._fresh = not (self._rest or self._line or self._pasting)

    def feed(self, data: bytes) -> list[TypedLine]:
        """Return the lines that are complete now."""
        self._rest += data
        found: list[TypedLine] = []
        while True:
            mark = self._END if self._pasting else self._next_mark()
            head, mark, rest = self._rest.partition(mark)
            if not mark:
                return found
            self._line, self._rest = self._line + head, rest
            if mark == b"\n":
                found.append(self._take_line())
            else:
                self._pasting = mark == self._BEGIN
                self._pasted = True

    def _take_line(self) -> TypedLine:
        line = TypedLine(text=self._text(self._line), by_hand=not self._pasted, fresh=self._fresh)
        self._line, self._pasted, self._fresh = b"", False, True
        return line

    def _next_mark(self) -> bytes:
        line_end, paste = self._rest.find(b"\n"), self._rest.find(self._BEGIN)
        begins_first = paste >= 0 and (line_end < 0 or paste < line_end)
        return self._BEGIN if begins_first else b"\n"

    def take_rest(self) -> str:
        """Return what was begun and not ended; it is forgotten here."""
        rest, self._rest, self._line = self._line + self._rest, b"", b""
        self._pasting = self._pasted = False
        self._fresh = True
        return self._text(rest)

    def _text(self, line: bytes) -> str:
        return strip_sequences(line.decode(self._encoding, errors="replace"))


def read_pending(descriptor: int) -> bytes:
    """Return all that was typed until now, also a line that is not ended; waits for nothing."""
    found: list[bytes] = []
    with _without_lines(descriptor):
        while select.select([descriptor], [], [], 0)[0]:
            try:
                data = os.read(descriptor, 65536)
            except OSError:  # the terminal is gone, which the next wait notices
                break
            if not data:
                break
            found.append(data)
    return b"".join(found)


@contextmanager
def _without_lines(descriptor: int) -> Generator[None]:
    """Have a terminal hand out what it would keep until the line is ended."""
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
