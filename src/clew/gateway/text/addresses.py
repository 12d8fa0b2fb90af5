"""Web addresses that are written as their own text, without markup around them."""

from __future__ import annotations

import re

from markdown_it.common.normalize_url import normalizeLink

#: The part of an address without characters that are markup: left as it is, to be clickable.
BARE_ADDRESS = re.compile(r"(https?://(?:[^\s<>\\*~`|\[\]&_]|(?<=\w)_(?=\w)|&(?!#?\w+;))+)")
_MARKS = re.compile(r"[\\*~`|\[\]]|(?<!\w)_|_(?!\w)")
_ENTITY = re.compile(r"(&#?\w+);")


def is_bare_address(text: str, address: str) -> bool:
    """Return whether a text needs no markup to link to an address: it spells that address."""
    if not BARE_ADDRESS.fullmatch(text):
        return False
    return address in (text, normalizeLink(text))


def spell_address(text: str, address: str) -> str:
    """Return the text of an address that stands alone, with what would be markup encoded."""
    if not address.startswith(("http://", "https://")) or is_bare_address(text, address):
        return text
    encoded = _MARKS.sub(lambda found: f"%{ord(found[0]):02X}", address)
    return _ENTITY.sub(r"\1%3B", encoded)
