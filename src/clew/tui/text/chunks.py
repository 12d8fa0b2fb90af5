"""Markdown in pieces that can be drawn on their own: only the last one changes while it grows."""

from __future__ import annotations

import re
from typing import Final

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
#: A line that belongs to what stands before it, also behind an empty line.
_GOES_ON: Final = re.compile(r"\s+\S|[-*+] |\d{1,9}[.)] |>|\|")


def chunks(text: str) -> list[str]:
    """Pieces, split at empty lines outside of code and lists; joined they are the text."""
    found: list[str] = []
    begun: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        if begun and not fence and not begun[-1].strip() and _begins(line):
            found.append("".join(begun))
            begun = []
        begun.append(line)
        fence = _fence_after(fence, line)
    if begun:
        found.append("".join(begun))
    return found


def _begins(line: str) -> bool:
    return bool(line.strip()) and not _GOES_ON.match(line)


def _fence_after(fence: str, line: str) -> str:
    """The fence that is open behind a line, "" if none is."""
    found = _FENCE.match(line)
    if not fence:
        return found[1] if found else ""
    closes = found and found[1].startswith(fence) and not line.strip().strip(fence[0])
    return "" if closes else fence
