"""Characters that were cut in two: joined where both halves came, replaced where one did."""

from __future__ import annotations

import codecs
import re
from typing import Any, cast

__all__ = ["EscapeMender", "Mender", "mend", "mend_all", "mend_escapes"]

#: Half a character: of a pair in UTF-16, or a byte that was no UTF-8 (``surrogateescape``).
_HALF = re.compile("[\ud800-\udfff]")
#: Bytes that were no UTF-8 by themselves.
_BYTES = re.compile("(?<![\ud800-\udbff])[\udc80-\udcff]+")
_OPEN_PAIR = re.compile("[\ud800-\udbff]$")
_OPEN_BYTES = re.compile("(?<![\ud800-\udbff])[\udc80-\udcff]+$")
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
_OPEN_ESCAPE = re.compile(
    r"(?<!\\)(?:\\\\)*((?:\\u[dD][89abAB][0-9a-fA-F]{2})?(?:\\(?:u[0-9a-fA-F]{0,3})?)?)$"
)


def mend(text: str) -> str:
    """Return the text with halves joined, and those that stay alone replaced by U+FFFD."""
    if not _HALF.search(text):
        return text
    text = _BYTES.sub(lambda found: _bytes(found[0]).decode("utf-8", "replace"), text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def mend_all(value: object) -> Any:
    """Return parsed JSON with each of its strings mended."""
    match value:
        case str():
            return mend(value)
        case list():
            return [mend_all(item) for item in cast("list[object]", value)]
        case dict():
            items = cast("dict[str, object]", value).items()
            return {mend(key): mend_all(item) for key, item in items}
        case _:
            return value


def mend_escapes(text: str) -> str:
    r"""Return JSON text in which no ``\ud83d`` stands without its other half."""
    if "\\u" not in text:
        return text
    return _ESCAPE.sub(lambda found: "\\ufffd" if found[1] else found[0], text)


class Mender:
    """Mends a text that comes in pieces; a half at the end of one waits for the next."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what can be said of the text so far."""
        if self.passes(piece):
            return piece
        text = self._held + piece
        self._held = _unfinished(text)
        return mend(text[: len(text) - len(self._held)])

    def passes(self, piece: str) -> bool:
        """Return whether a piece needs nothing."""
        return not self._held and (piece.isascii() or not _HALF.search(piece))

    def end(self) -> str:
        """Return what is left, at the end of the text."""
        rest, self._held = self._held, ""
        return mend(rest)


class EscapeMender:
    """Mends JSON text that comes in pieces, its characters and its escapes."""

    def __init__(self) -> None:
        self._characters = Mender()
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what can be said of the text so far."""
        text = self._held + self._characters.feed(piece)
        self._held = ""
        if "\\" not in text:
            return text
        if open_escape := _OPEN_ESCAPE.search(text):
            self._held = open_escape[1]
        return mend_escapes(text[: len(text) - len(self._held)])

    def end(self) -> str:
        """Return what is left, at the end of the text."""
        rest, self._held = self._held + self._characters.end(), ""
        return mend_escapes(rest)


def _bytes(escaped: str) -> bytes:
    return bytes(ord(letter) - 0xDC00 for letter in escaped)


def _unfinished(text: str) -> str:
    """The end of a text that the next piece may complete."""
    if pair := _OPEN_PAIR.search(text):
        return pair[0]
    if (run := _OPEN_BYTES.search(text)) is None:
        return ""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(_bytes(run[0]))
    return "".join(chr(byte + 0xDC00) for byte in decoder.getstate()[0])
