"""Text that came through a terminal: without its sequences, or with every character visible."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

#: A key as the newer protocols of terminals write it: ``ESC [ 13 ; 1 u``, ``ESC [ 27 ; 2 ; 13 ~``.
_KEY: Final = re.compile(r"\x1b\[(?:27;\d+;(\d+)~|(\d+)(?::\d*)*(?:;[\d:]*)*u)")
#: Colours, cursor movements, titles, links, and what else begins with ESC.
_SEQUENCE: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b[PX^_][^\x1b]*\x1b\\"
    r"|\x1b[NO][ -~]"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TEXT_KEYS: Final = {9: "\t", 13: "\n", 10: "\n"}
#: Categories of characters that show nothing, or something else than they are.
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def without_sequences(text: str) -> str:
    """
    Return what a person typed or pasted, without the terminal's sequences.

    Line ends are one character, also those that a terminal wrote as the key Enter; the order of
    all other characters stays.
    """
    text = _KEY.sub(_typed, text)
    text = _SEQUENCE.sub("", text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", text)


def _typed(match: re.Match[str]) -> str:
    code = int(match[1] or match[2])
    if code in _TEXT_KEYS:
        return _TEXT_KEYS[code]
    if code > 0x10FFFF:
        return ""
    character = chr(code)
    return character if character.isprintable() else ""


def make_visible(text: str) -> str:
    r"""
    Return a text whose every character can be seen: what is agreed to must be what is shown.

    Blanks stay as they are, and line breaks; controls, marks that turn the direction of writing,
    characters without width and blanks that only look like one are written as ``\u{202E}``.
    """
    return "".join(each if _is_visible(each) else f"\\u{{{ord(each):X}}}" for each in text)


def _is_visible(character: str) -> bool:
    if character in " \n":
        return True
    category = unicodedata.category(character)
    return category not in _INVISIBLE and category != "Zs"
