"""Export as Markdown: messages keep their own markup but cannot break the document."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from clew.engine.readable_export.document import (
    CollapsibleBlock,
    HeadingBlock,
    MessageBlock,
    NoteBlock,
)
from clew.engine.readable_export.message_markdown import confine_markdown

if TYPE_CHECKING:
    from clew.engine.readable_export.document import DocumentBlock

#: Characters with a meaning in inline Markdown.
_MARKS: Final = re.compile(r"([\\`*\[\]<>&~|$#]|(?<![^\W_])_|_(?![^\W_]))")
_TICKS: Final = re.compile(r"`+")

HEAD: Final = "# Conversations\n"


def render_markdown_block(block: DocumentBlock) -> str:
    """Return a block, preceded by an empty line."""
    match block:
        case HeadingBlock(text=text, about=about, facts=facts):
            named = " · ".join(
                f"{_escape_line(name)}: {_escape_line(value)}" for name, value in facts
            )
            return f"\n## {_escape_line(text)}\n\n{_escape_line(about)}\n\n*{named}*\n"
        case MessageBlock(who=who, model=model, time=time, text=text):
            by = f"{_escape_line(who)} ({_escape_line(model)})" if model else _escape_line(who)
            return f"\n### {by} · {time}\n{_render_message(text)}"
        case CollapsibleBlock(label=label, text=text):
            return f"\n**{_escape_line(label)}**\n{_fence_text(text)}"
        case NoteBlock(text=text):
            return f"\n*{_escape_line(text)}*\n"


def _render_message(text: str) -> str:
    contained = confine_markdown(text)
    return _fence_text(text) if contained is None else f"\n{contained}\n"


def _escape_line(text: str) -> str:
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def _fence_text(text: str) -> str:
    """Return the text as a code block that its content cannot close."""
    if not text.strip():
        return ""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"\n{fence}text\n{text}\n{fence}\n"
