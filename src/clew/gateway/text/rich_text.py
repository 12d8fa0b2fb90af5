"""Rich text: formatted text in blocks that should stay whole."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import regex

from clew.core.text import is_blank
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


class TextStyle(enum.Flag):
    """Formatting of a run of text."""

    PLAIN = 0
    BOLD = enum.auto()
    ITALIC = enum.auto()
    STRIKE = enum.auto()
    CODE = enum.auto()


class TextRun(Record, kw_only=False):
    """Text of one format."""

    text: str
    style: TextStyle = TextStyle.PLAIN
    #: The link target as written; a platform decides which addresses it can link.
    link: str | None = None


class CodeFrame(Record, kw_only=False):
    """A code block around text blocks."""

    language: str = ""


class QuoteFrame(Record, kw_only=False):
    """A block quote around text blocks."""


BlockFrame = CodeFrame | QuoteFrame


class TextBlock(Record, kw_only=False):
    """A line of code, list item or paragraph: kept in one message if it fits."""

    runs: tuple[TextRun, ...]
    #: The text before it, unless it is the first of a message.
    separator: str = "\n\n"
    frame: BlockFrame | None = None
    #: Blocks of one group (a list, a code block) are kept in one message if they fit.
    group: int = 0

    @property
    def text(self) -> str:
        return "".join(run.text for run in self.runs)

    @property
    def is_blank(self) -> bool:
        return is_blank(self.text)


def to_plain_text(pieces: Iterable[TextBlock]) -> str:
    """Return the text alone, as people read it."""
    written = ""
    for piece in pieces:
        written += (piece.separator if written else "") + piece.text
    return written


def show_addresses(pieces: Iterable[TextBlock], linkable: Callable[[str], bool]) -> list[TextBlock]:
    """Return the blocks with each address that cannot be linked written after its text."""
    return [
        replace(piece, runs=merge_runs(_show_address(run, linkable) for run in piece.runs))
        for piece in pieces
    ]


def _show_address(run: TextRun, linkable: Callable[[str], bool]) -> TextRun:
    if run.link is None or linkable(run.link):
        return run
    known = run.link.removeprefix("mailto:") in run.text
    text = run.text if known else f"{run.text} ({run.link})"
    return TextRun(text, run.style)


def split_graphemes(text: str) -> list[str]:
    """Return the user-perceived characters: an emoji family, a letter with its accents."""
    found: list[str] = regex.findall(r"\X", text)
    return found


def split_words(runs: Sequence[TextRun]) -> Iterator[TextRun]:
    """Yield runs that a line is best broken between: words, and each link whole."""
    for run in runs:
        if run.link is not None:
            yield run
            continue
        for word in regex.findall(r"\S+\s*|\s+", run.text):
            yield TextRun(word, run.style, run.link)


def merge_runs(runs: Iterable[TextRun]) -> tuple[TextRun, ...]:
    """Merge adjacent runs of one format; drop empty ones."""
    found: list[TextRun] = []
    for run in runs:
        if not run.text:
            continue
        if found and (found[-1].style, found[-1].link) == (run.style, run.link):
            found[-1] = TextRun(found[-1].text + run.text, run.style, run.link)
        else:
            found.append(run)
    return tuple(found)
