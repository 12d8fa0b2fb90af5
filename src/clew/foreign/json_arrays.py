"""Large JSON arrays, one element at a time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

_CHUNK: Final = 1 << 20
_SPACE: Final = " \t\r\n"


class BrokenArray(ValueError):
    """An array that ends early or is no JSON."""


def iter_array(file: TextIO) -> Iterator[Any]:
    """
    Yield the elements of an array; of anything else, the value itself.

    :raises BrokenArray: after the last element that can be read
    """
    reader = _Reader(file)
    if reader.peek() != "[":
        yield reader.read_value()
        return
    reader.skip()
    while reader.peek() not in ("]", ""):
        yield reader.read_value()
        if reader.peek() == ",":
            reader.skip()
        elif reader.peek() != "]":
            raise BrokenArray("it ends early" if not reader.peek() else "it is not JSON")
    if not reader.peek():
        raise BrokenArray("it ends early")


class _Reader:
    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._decoder = json.JSONDecoder()
        self._text, self._at, self._size = "", 0, _CHUNK

    def peek(self) -> str:
        """Return the next character that is no space; empty at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._fill():
                return ""

    def skip(self) -> None:
        self._at += 1

    def read_value(self) -> Any:
        """Return the next value."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                # It may only be cut; twice as much is read each time, so that it stays linear.
                if not self._fill():
                    raise BrokenArray(f"it ends early or is not JSON ({error})") from error
            else:
                # A number at the end may go on.
                if end == len(self._text) and self._fill():
                    continue
                end = min(end, len(self._text))
                self._at, self._size = end, _CHUNK
                return value

    def _fill(self) -> bool:
        more = self._file.read(self._size)
        self._size *= 2
        self._text = self._text[self._at :] + more
        self._at = 0
        return bool(more)
