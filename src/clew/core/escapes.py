"""Terminal text: escape sequences removed, or every character made visible."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

#: A key as encoded by newer terminal protocols: ``ESC [ 13 ; 1 u``, ``ESC [ 27 ; 2 ; 13 ~``.
_KEY: Final = re.compile(r"\x1b\[(?:27;\d+;(\d+)~|(\d+)(?::\d*)*(?:;[\d:]*)*u)")
#: Colours, cursor movements, titles, links and other ESC sequences.
_SEQUENCE: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b[PX^_][^\x1b]*\x1b\\"
    r"|\x1b[NO][ -~]"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
#: Control characters, and marks that show the characters after them in another order.
_DECEPTIVE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_TEXT_KEYS: Final = {9: "\t", 13: "\n", 10: "\n"}
#: Categories of invisible or deceptive characters.
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def strip_sequences(text: str) -> str:
    """
    Return typed or pasted text without the terminal's escape sequences.

    Each line end becomes one character, also one that the terminal encoded as the Enter
    key; the order of all other characters is kept.
    """
    text = _KEY.sub(_decode_key, text)
    text = _SEQUENCE.sub("", text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", text)


def _decode_key(match: re.Match[str]) -> str:
    code = int(match[1] or match[2])
    if code in _TEXT_KEYS:
        return _TEXT_KEYS[code]
    if code > 0x10FFFF:
        return ""
    character = chr(code)
    return character if character.isprintable() else ""


def strip_controls(text: str) -> str:
    """
    Return foreign text that a terminal shows as it is written.

    It moves no cursor, rings no bell, and changes neither the title nor the order in which
    characters stand.
    """
    return _DECEPTIVE.sub("", text)


def make_visible(text: str) -> str:
    r"""
    Return the text with every character visible: people approve what they can see.

    Spaces and line breaks stay; control characters, marks that change the direction of
    writing, characters without width and spaces that only look like one become
    ``\u{202E}``.
    """
    return "".join(each if _is_visible(each) else f"\\u{{{ord(each):X}}}" for each in text)


def _is_visible(character: str) -> bool:
    if character in " \n":
        return True
    category = unicodedata.category(character)
    return category not in _INVISIBLE and category != "Zs"
