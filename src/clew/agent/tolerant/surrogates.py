"""Repair of characters split in two: both halves are joined, a single one is replaced."""

from __future__ import annotations

import codecs
import re
from typing import Any, cast

__all__ = ["EscapeRepairer", "TextRepairer", "repair_escapes", "repair_json", "repair_text"]

#: Half a character: one of a UTF-16 pair, or a byte that is not UTF-8 (``surrogateescape``).
_SURROGATE = re.compile("[\ud800-\udfff]")
#: Bytes that are not UTF-8 by themselves.
_ESCAPED_BYTES = re.compile("(?<![\ud800-\udbff])[\udc80-\udcff]+")
_OPEN_PAIR = re.compile("[\ud800-\udbff]$")
_OPEN_BYTES = re.compile("(?<![\ud800-\udbff])[\udc80-\udcff]+$")
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
_OPEN_ESCAPE = re.compile(
    r"(?<!\\)(?:\\\\)*((?:\\u[dD][89abAB][0-9a-fA-F]{2})?(?:\\(?:u[0-9a-fA-F]{0,3})?)?)$"
)


def repair_text(text: str) -> str:
    """Return the text with halves joined, and single ones replaced by U+FFFD."""
    if not _SURROGATE.search(text):
        return text
    text = _ESCAPED_BYTES.sub(
        lambda found: _unescape_bytes(found[0]).decode("utf-8", "replace"), text
    )
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def repair_json(value: object) -> Any:
    """Return parsed JSON with each of its strings repaired."""
    match value:
        case str():
            return repair_text(value)
        case list():
            return [repair_json(item) for item in cast("list[object]", value)]
        case dict():
            items = cast("dict[str, object]", value).items()
            return {repair_text(key): repair_json(item) for key, item in items}
        case _:
            return value


def repair_escapes(text: str) -> str:
    """Return JSON text with each lone surrogate escape replaced."""
    if "\\u" not in text:
        return text
    return _ESCAPE.sub(lambda found: "\\ufffd" if found[1] else found[0], text)


class TextRepairer:
    """Repairer of a text in pieces; a half at the end of one waits for the next."""

    def __init__(self) -> None:
        self._held = ""

    def feed_piece(self, piece: str) -> str:
        """Return the repaired text available so far."""
        if self.needs_no_repair(piece):
            return piece
        text = self._held + piece
        self._held = _find_unfinished(text)
        return repair_text(text[: len(text) - len(self._held)])

    def needs_no_repair(self, piece: str) -> bool:
        """Return whether a piece can pass unchanged."""
        return not self._held and (piece.isascii() or not _SURROGATE.search(piece))

    def flush_rest(self) -> str:
        """Return the rest at the end of the text."""
        rest, self._held = self._held, ""
        return repair_text(rest)


class EscapeRepairer:
    """Repairer of JSON text in pieces: its characters and its escapes."""

    def __init__(self) -> None:
        self._characters = TextRepairer()
        self._held = ""

    def feed_piece(self, piece: str) -> str:
        """Return the repaired text available so far."""
        text = self._held + self._characters.feed_piece(piece)
        self._held = ""
        if "\\" not in text:
            return text
        if open_escape := _OPEN_ESCAPE.search(text):
            self._held = open_escape[1]
        return repair_escapes(text[: len(text) - len(self._held)])

    def flush_rest(self) -> str:
        """Return the rest at the end of the text."""
        rest, self._held = self._held + self._characters.flush_rest(), ""
        return repair_escapes(rest)


def _unescape_bytes(escaped: str) -> bytes:
    return bytes(ord(letter) - 0xDC00 for letter in escaped)


def _find_unfinished(text: str) -> str:
    """Return the end of a text that the next piece may complete."""
    if pair := _OPEN_PAIR.search(text):
        return pair[0]
    if (run := _OPEN_BYTES.search(text)) is None:
        return ""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(_unescape_bytes(run[0]))
    return "".join(chr(byte + 0xDC00) for byte in decoder.getstate()[0])
