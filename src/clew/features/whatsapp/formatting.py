"""
Writer from text blocks to WhatsApp's formatting.

WhatsApp has no way to escape a mark: a format is written only where its marks stand alone, and
marks that belong to the text stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.gateway.text.markdown_writer import JOINER, count_utf16_units
from clew.gateway.text.rich_text import (
    BlockFrame,
    CodeFrame,
    QuoteFrame,
    TextBlock,
    TextRun,
    TextStyle,
)
from clew.gateway.text.splitting import TextCost, group_by_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

_FENCE: Final = "```"
_STYLES: Final = ((TextStyle.BOLD, "*"), (TextStyle.ITALIC, "_"), (TextStyle.STRIKE, "~"))


class WhatsAppMeasure:
    """The measure of WhatsApp, as an upper bound."""

    def run_cost(self, run: TextRun, frame: BlockFrame | None) -> TextCost:
        if isinstance(frame, CodeFrame):
            return TextCost(count_utf16_units(_escape_fence(run.text)))
        quoted = 2 * run.text.count("\n") if isinstance(frame, QuoteFrame) else 0
        return TextCost(count_utf16_units(run.text) + 2 * len(_STYLES) + quoted)

    def frame_cost(self, frame: BlockFrame) -> TextCost:
        return TextCost(2 * len(_FENCE) + 2)

    def text_cost(self, text: str) -> TextCost:
        # Within a quote each line has a marker.
        return TextCost(count_utf16_units(text) + 2 * text.count("\n"))

    def can_link(self, address: str) -> bool:
        return False


def write_formatted(part: Sequence[TextBlock]) -> str:
    """Return the text of one message."""
    written = ""
    for frame, pieces in group_by_frame(part):
        written += (pieces[0].separator if written else "") + _write_block(frame, pieces)
    return written


def _write_block(frame: BlockFrame | None, pieces: Sequence[TextBlock]) -> str:
    if isinstance(frame, CodeFrame):
        lines = "\n".join(_escape_fence(piece.text) for piece in pieces)
        return f"{_FENCE}\n{lines}\n{_FENCE}"
    text = ""
    for number, piece in enumerate(pieces):
        text += (piece.separator if number else "") + _write_line(piece.runs)
    if isinstance(frame, QuoteFrame):
        text = "\n".join(f"> {line}" for line in text.split("\n"))
    return text


def _escape_fence(text: str) -> str:
    return text.replace(_FENCE, f"``{JOINER}`")


def _write_line(runs: Sequence[TextRun]) -> str:
    text = ""
    for number, run in enumerate(runs):
        after = runs[number + 1].text[:1] if number + 1 < len(runs) else ""
        text += _write_run(run, text[-1:], after)
    return text


def _write_run(run: TextRun, before: str, after: str) -> str:
    """Return a run with its marks, where nobody would read them as text."""
    core = run.text.strip()
    begins = run.text.find(core)
    left, right = run.text[:begins], run.text[begins + len(core) :]
    marks = _marks_of(run, core)
    stands_alone = not _joins(left[-1:] or before) and not _joins(right[:1] or after)
    if not (core and marks and stands_alone):
        return run.text
    return left + marks + core + marks[::-1] + right


def _marks_of(run: TextRun, core: str) -> str:
    """Return the marks of a run's style; none if its text would end them early."""
    if run.style & TextStyle.CODE:
        return "" if "`" in core or "\n" in core else "`"
    marks = "".join(mark for style, mark in _STYLES if run.style & style)
    return "" if "\n" in core or any(mark in core for mark in marks) else marks


def _joins(character: str) -> bool:
    """Return whether a mark beside this character would be read as a part of the text."""
    return character.isalnum() or character in ("*", "_", "~", "`") if character else False
