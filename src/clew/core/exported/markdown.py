"""An export as Markdown: what was said stands as it is and cannot change the page around it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from clew.core.exported.blocks import Folded, Remark, Said, Title

if TYPE_CHECKING:
    from clew.core.exported.blocks import Block

#: What Markdown may read as more than itself within a line.
_MARKS: Final = re.compile(r"([\\`*\[\]<>&~|$#]|(?<![^\W_])_|_(?![^\W_]))")
_TICKS: Final = re.compile(r"`+")

HEAD: Final = "# Conversations\n"


def markdown(block: Block) -> str:
    """A block, with an empty line before it."""
    match block:
        case Title(text=text, facts=facts):
            rows = "".join(f"- {name}: {_line(value)}\n" for name, value in facts)
            return f"\n## {_line(text)}\n\n{rows}"
        case Said(who=who, seq=seq, at=at, text=text):
            return f"\n### {who} · {seq} · {at}\n{_verbatim(text)}"
        case Folded(label=label, text=text):
            return f"\n**{_line(label)}**\n{_verbatim(text)}"
        case Remark(text=text):
            return f"\n*{_line(text)}*\n"


def _line(text: str) -> str:
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def _verbatim(text: str) -> str:
    """Text as a block that nothing in it can end."""
    if not text.strip():
        return ""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"\n{fence}text\n{text}\n{fence}\n"
