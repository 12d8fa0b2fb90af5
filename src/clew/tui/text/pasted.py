"""Pasted text, decoded from the encoding of terminals and multiplexers."""

from __future__ import annotations

import re
from typing import Final

#: A key as the keyboard protocol encodes it: its code, its modifiers, the text that it makes.
_KEY: Final = re.compile(r"\x1b\[(\d+)(?::\d*)*(?:;(\d*)(?::(\d+))?)?(?:;([\d:]*))?u")
#: The same in xterm's encoding.
_XTERM_KEY: Final = re.compile(r"\x1b\[27;(\d+);(\d+)~")
#: Sequences that change colours, move the cursor, set titles and links.
_SEQUENCE: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n\r]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[PX^_][^\x1b]*\x1b\\"
    r"|\x1b[()][0-9A-Z]|\x1b[78=>]"
)
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
#: Modifier bits that change a letter's meaning: alt, ctrl, super, hyper, meta.
_OTHER_KEYS: Final = 0b111110
#: Keys in the private use area produce no text.
_FIRST_PRIVATE, _LAST_PRIVATE = 0xE000, 0xF8FF
_RELEASED: Final = "3"


def decode_paste(raw: str) -> str:
    """Return the text: encoded keys as their characters, no sequences or controls."""
    text = _KEY.sub(_decode_key, raw)
    text = _XTERM_KEY.sub(lambda found: _decode_char(int(found[2]), int(found[1])), text)
    text = _SEQUENCE.sub("", text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", text)


def _decode_key(found: re.Match[str]) -> str:
    code, modifiers, kind, text = found.groups()
    if kind == _RELEASED:
        return ""
    if text and text.strip(":"):
        return "".join(_decode_char(int(each), 1) for each in text.split(":") if each)
    return _decode_char(int(code), int(modifiers or 1))


def _decode_char(code: int, modifiers: int) -> str:
    if code in (10, 13):
        return "\n"
    if code > 0x10FFFF or _FIRST_PRIVATE <= code <= _LAST_PRIVATE or (modifiers - 1) & _OTHER_KEYS:
        return ""
    return chr(code)
