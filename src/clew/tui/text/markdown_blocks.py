"""Markdown split into separately rendered blocks: while it grows, only the last changes."""

from __future__ import annotations

import re
from typing import Final

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
#: A line that continues the previous block, even after an empty line.
_CONTINUATION: Final = re.compile(r"\s+\S|[-*+] |\d{1,9}[.)] |>|\|")


def split_blocks(text: str) -> list[str]:
    """Return blocks split at empty lines outside code and lists; joined they are the text."""
    found: list[str] = []
    begun: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        if begun and not fence and not begun[-1].strip() and _starts_block(line):
            found.append("".join(begun))
            begun = []
        begun.append(line)
        fence = _open_fence(fence, line)
    if begun:
        found.append("".join(begun))
    return found


def _starts_block(line: str) -> bool:
    return bool(line.strip()) and not _CONTINUATION.match(line)


def _open_fence(fence: str, line: str) -> str:
    """Return the fence that is open after a line, "" if none is."""
    found = _FENCE.match(line)
    if not fence:
        return found[1] if found else ""
    closes = found and found[1].startswith(fence) and not line.strip().strip(fence[0])
    return "" if closes else fence
