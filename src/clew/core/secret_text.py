"""Validation of keys and tokens for use in HTTP headers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

COPY_AGAIN: Final = "copy the key again, without quotation marks and spaces"
_NAMES: Final = {
    "\n": "a line break",
    "\r": "a line break",
    "\t": "a tab",
    " ": "a space at its end",
    "\x00": "a NUL",
    "\xa0": "a no-break space",
    "\ufeff": "an invisible mark",
    "\u200b": "an invisible mark",
    **dict.fromkeys("\u201c\u201d\u201e\u2018\u2019\u201a\u00ab\u00bb", "a curly quotation mark"),
}


def find_unsendable(secret: str) -> str | None:
    """
    Return a clause that names the first character that a header cannot carry.

    Returns ``None`` if there is none. The clause does not contain the secret.
    """
    for place, name in _iter_unsendable(secret):
        return f"character {place} of it is {name}; {COPY_AGAIN}"
    return None


def _iter_unsendable(secret: str) -> Iterator[tuple[int, str]]:
    if re.fullmatch(r"(['\"]).*\1", secret, re.DOTALL):
        yield 1, "a quotation mark"
    for place, character in enumerate(secret, start=1):
        is_inner_space = character == " " and 1 < place < len(secret)
        if is_inner_space or "!" <= character <= "~":
            continue
        yield place, _NAMES.get(character) or _describe_character(character)


def _describe_character(character: str) -> str:
    if character.isprintable():
        return f"{character!r}, which is not ASCII"
    return f"a control character (U+{ord(character):04X})"
