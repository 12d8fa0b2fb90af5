"""Pieces: a text with its formatting, in parts that should not be torn apart."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import regex

from clew.core.text import is_blank

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


class Style(enum.Flag):
    PLAIN = 0
    BOLD = enum.auto()
    ITALIC = enum.auto()
    STRIKE = enum.auto()
    CODE = enum.auto()


@dataclass(frozen=True, slots=True)
class Run:
    """Text of one format."""

    text: str
    style: Style = Style.PLAIN
    #: Where it leads, as written: a platform says which addresses it can link.
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Code:
    """A frame: a block of code."""

    language: str = ""


@dataclass(frozen=True, slots=True)
class Quote:
    """A frame: what somebody else said."""


Frame = Code | Quote


@dataclass(frozen=True, slots=True)
class Piece:
    """A line of code, an item of a list, a paragraph: whole in one message if it fits into one."""

    runs: tuple[Run, ...]
    #: What stands before it, unless it is the first of a message.
    glue: str = "\n\n"
    frame: Frame | None = None
    #: Pieces of one group (a list, a block of code) are in one message if they fit into one.
    group: int = 0

    @property
    def text(self) -> str:
        return "".join(run.text for run in self.runs)

    @property
    def blank(self) -> bool:
        return is_blank(self.text)


def plain(pieces: Iterable[Piece]) -> str:
    """The text alone, as it is read."""
    written = ""
    for piece in pieces:
        written += (piece.glue if written else "") + piece.text
    return written


def with_addresses(pieces: Iterable[Piece], linkable: Callable[[str], bool]) -> list[Piece]:
    """The pieces, in which an address that a platform cannot link stands behind its text."""
    return [
        replace(piece, runs=merged(_with_address(run, linkable) for run in piece.runs))
        for piece in pieces
    ]


def _with_address(run: Run, linkable: Callable[[str], bool]) -> Run:
    if run.link is None or linkable(run.link):
        return run
    text = run.text if run.link in run.text else f"{run.text} ({run.link})"
    return Run(text, run.style)


def graphemes(text: str) -> list[str]:
    """What a reader sees as one character each: a family of emoji, a letter with its accents."""
    found: list[str] = regex.findall(r"\X", text)
    return found


def atoms(runs: Sequence[Run]) -> Iterator[Run]:
    """Runs in parts between which a line may be cut best: words, each link whole."""
    for run in runs:
        if run.link is not None:
            yield run
            continue
        for word in regex.findall(r"\S+\s*|\s+", run.text):
            yield Run(word, run.style, run.link)


def merged(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Neighbours of one format as one run; empty ones left out."""
    found: list[Run] = []
    for run in runs:
        if not run.text:
            continue
        if found and (found[-1].style, found[-1].link) == (run.style, run.link):
            found[-1] = Run(found[-1].text + run.text, run.style, run.link)
        else:
            found.append(run)
    return tuple(found)
