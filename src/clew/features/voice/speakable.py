"""The words of an answer as they are spoken: without marks, addresses and code; pure."""

from __future__ import annotations

import re
from typing import Final

#: Characters that are spoken of one answer; services take 4,096.
MAX_CHARS: Final = 3_000

_CODE_BLOCK: Final = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
_ADDRESS: Final = re.compile(r"<?\bhttps?://\S+")
_LINE_MARKS: Final = re.compile(r"^\s*(?:#{1,6}|>+|[-*+]|\|)\s+", re.MULTILINE)
_INLINE_MARKS: Final = re.compile(r"\*\*|__|~~|`+|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)|\|")
_SENTENCE_END: Final = re.compile(r"[.!?…]['\")\]]?\s|\n")


def make_speakable(text: str) -> str:
    """Return what is said of an answer in Markdown; empty if there is nothing to say."""
    plain = _CODE_BLOCK.sub("", text)
    plain = _ADDRESS.sub("", _LINK.sub(r"\1", plain))
    plain = _INLINE_MARKS.sub("", _LINE_MARKS.sub("", plain))
    plain = re.sub(r"\n{2,}", "\n", re.sub(r"[ \t]+", " ", plain)).strip()
    if len(plain) <= MAX_CHARS:
        return plain if any(map(str.isalnum, plain)) else ""
    ends = [found.end() for found in _SENTENCE_END.finditer(plain, 0, MAX_CHARS)]
    return plain[: ends[-1] if ends else MAX_CHARS].strip()
