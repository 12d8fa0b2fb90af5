"""
Writer from text blocks to Markdown, for platforms that take text with markup.

The written text displays the same text: every character that a reader could take for markup
is escaped, and a format whose marks would not be recognised is dropped. It mentions nobody.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from clew.gateway.text.addresses import BARE_ADDRESS, is_bare_address
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
    from collections.abc import Callable, Sequence

JOINER = "\N{WORD JOINER}"

_MARKS = re.compile(r"[\\`*_~|<\[\]&]")
_LINE_START = re.compile(r"^([ \t]*)([#>\-+=])", re.MULTILINE)
_NUMBERED = re.compile(r"^([ \t]*\d+)([.)])", re.MULTILINE)
_MENTION = re.compile(r"(?<!\w)@(?=\w)|@(?=everyone|here)")
_DEEP = re.compile(r"^ {4,}", re.MULTILINE)
_STYLES = ((TextStyle.STRIKE, "~~"), (TextStyle.BOLD, "**"), (TextStyle.ITALIC, "*"))
_FENCE = "```"


def count_utf16_units(text: str) -> int:
    """Return the length of a text in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def is_linkable(address: str) -> bool:
    """Return whether an address may be hidden behind a text."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def escape_markdown(text: str) -> str:
    """Escape a text so that Markdown displays it as it is; addresses stay as they are."""
    parts = BARE_ADDRESS.split(text)
    for place in range(0, len(parts), 2):
        parts[place] = _MARKS.sub(r"\\\g<0>", parts[place])
    whole = "".join(parts)
    whole = _LINE_START.sub(r"\1\\\2", whole)
    whole = _NUMBERED.sub(r"\1\\\2", whole)
    whole = _MENTION.sub(f"@{JOINER}", whole)
    # Before a link it would turn it into an image.
    return re.sub(r"!\Z", r"\\!", whole)


class MarkdownMeasure:
    """The measure of a platform that takes Markdown."""

    def __init__(self, length: Callable[[str], int] = count_utf16_units) -> None:
        self._length = length

    def run_cost(self, run: TextRun, frame: BlockFrame | None) -> TextCost:
        if isinstance(frame, CodeFrame):
            return TextCost(self._length(_escape_fence(run.text)))
        # A joiner may have to precede it.
        written = _write_run(run, _marks_of(run)) + JOINER
        quoted = 2 * written.count("\n") if isinstance(frame, QuoteFrame) else 0
        return TextCost(self._length(written) + quoted)

    def frame_cost(self, frame: BlockFrame) -> TextCost:
        if isinstance(frame, CodeFrame):
            return TextCost(2 * len(_FENCE) + 2 + len(frame.language))
        return TextCost(4)

    def can_link(self, address: str) -> bool:
        return is_linkable(address)

    def text_cost(self, text: str) -> TextCost:
        # Within a quote each line has a marker.
        return TextCost(self._length(text) + 2 * text.count("\n"))


def write_markdown(part: Sequence[TextBlock]) -> str:
    """Return the text of one message."""
    written = ""
    for frame, pieces in group_by_frame(part):
        written += (pieces[0].separator if written else "") + _write_block(frame, pieces)
    return written


def _write_block(frame: BlockFrame | None, pieces: Sequence[TextBlock]) -> str:
    if isinstance(frame, CodeFrame):
        lines = "\n".join(_escape_fence(piece.text) for piece in pieces)
        return f"{_FENCE}{frame.language}\n{lines}\n{_FENCE}"
    text = ""
    for number, piece in enumerate(pieces):
        text += (piece.separator if number else "") + _write_line(piece.runs)
    # Otherwise a line of a deeply nested list would be code.
    text = _DEEP.sub(lambda found: "\N{NO-BREAK SPACE}" * len(found[0]), text)
    if isinstance(frame, QuoteFrame):
        text = "\n".join(f"> {line}" for line in text.split("\n"))
    return text


def _escape_fence(text: str) -> str:
    return text.replace(_FENCE, f"``{JOINER}`")


def _write_line(runs: Sequence[TextRun]) -> str:
    text = ""
    for number, run in enumerate(runs):
        after = _first_visible(runs[number + 1]) if number + 1 < len(runs) else ""
        marks = _marks_of(run)
        before = text[-1:]
        if before and before in "*~`" and _write_run(run, marks)[:1] == before:
            # Otherwise the two would be read as one mark.
            text += (before := JOINER)
        text += _write_run(run, marks if _are_marks_visible(before, run, after) else "")
    return text


def _first_visible(run: TextRun) -> str:
    """Return the text that follows the run before it; two marks are held apart."""
    marked = run.style is not TextStyle.PLAIN and not run.text[:1].isspace()
    return JOINER if marked else run.text[:1]


def _marks_of(run: TextRun) -> str:
    if run.style & TextStyle.CODE:
        return ""
    return "".join(mark for style, mark in _STYLES if run.style & style)


def _are_marks_visible(before: str, run: TextRun, after: str) -> bool:
    """Return whether every reader would recognise marks around a run."""
    core = run.text.strip()
    if not core:
        return False
    first, last = _write_run(TextRun(core, run.style, run.link), "")[:1], core[-1]
    opens = run.text[:1].isspace() or not _is_punctuation(first) or not _is_word_character(before)
    closes = (
        run.text[-1:].isspace()
        or not (_is_punctuation(last) or run.link)
        or not _is_word_character(after)
    )
    return opens and closes


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _is_word_character(character: str) -> bool:
    return bool(character) and not character.isspace() and not _is_punctuation(character)


def _write_run(run: TextRun, marks: str) -> str:
    core = run.text.strip()
    if not core:
        return run.text
    begins = run.text.index(core)
    before, behind = run.text[:begins], run.text[begins + len(core) :]
    inner = _write_code(core) if run.style & TextStyle.CODE else escape_markdown(core)
    if run.link is not None:
        inner = _write_link(inner, core, run.link)
    return before + marks + inner + marks[::-1] + behind


def _write_code(text: str) -> str:
    text = text.replace("\n", " ")
    # Some readers take three in a row for the start of a code block, anywhere.
    text = text.replace("``", f"`{JOINER}`").replace("``", f"`{JOINER}`")
    longest = max((len(found) for found in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest and "`" in (text[0], text[-1]) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _write_link(written: str, text: str, address: str) -> str:
    if is_bare_address(text, address):
        return text
    safe = address
    for sign in " ()<>\\":
        safe = safe.replace(sign, f"%{ord(sign):02X}")
    # A text that is an address itself is not displayed as a link to another one.
    return f"{written} ({safe})" if "://" in text else f"[{written}]({safe})"
