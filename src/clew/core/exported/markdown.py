"""An export as Markdown: a message keeps its own, and cannot change the document around it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from clew.core.exported.blocks import Folded, Remark, Said, Title
from clew.core.exported.message_markdown import contain

if TYPE_CHECKING:
    from clew.core.exported.blocks import Block

#: What Markdown may read as more than itself within a line.
_MARKS: Final = re.compile(r"([\\`*\[\]<>&~|$#]|(?<![^\W_])_|_(?![^\W_]))")
_TICKS: Final = re.compile(r"`+")

HEAD: Final = "# Conversations\n"


def markdown(block: Block) -> str:
    """Return a block, with an empty line before it."""
    match block:
        case Title(text=text, about=about, facts=facts):
            named = " · ".join(f"{_line(name)}: {_line(value)}" for name, value in facts)
            return f"\n## {_line(text)}\n\n{_line(about)}\n\n*{named}*\n"
        case Said(who=who, model=model, time=time, text=text):
            by = f"{_line(who)} ({_line(model)})" if model else _line(who)
            return f"\n### {by} · {time}\n{_message(text)}"
        case Folded(label=label, text=text):
            return f"\n**{_line(label)}**\n{_verbatim(text)}"
        case Remark(text=text):
            return f"\n*{_line(text)}*\n"


def _message(text: str) -> str:
    contained = contain(text)
    return _verbatim(text) if contained is None else f"\n{contained}\n"


def _line(text: str) -> str:
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def _verbatim(text: str) -> str:
    """Text as a block that nothing in it can end."""
    if not text.strip():
        return ""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"\n{fence}text\n{text}\n{fence}\n"
