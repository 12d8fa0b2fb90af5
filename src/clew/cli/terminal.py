"""What the terminal is and can: colours, whole text without control characters, tables."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: What a model or another person wrote must not move the cursor, ring or change the title.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Output:
    """
    A stream that people or programs read.

    A reader that goes away (``| head``) ends no turn: the rest is left out, ``check`` tells it.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        #: Whether a person sits before it.
        self.is_terminal: Final = stream.isatty()
        self._colours = self.is_terminal and _wants_colours()
        self._gone: BrokenPipeError | None = None
        #: Whether the next character begins a line.
        self.at_start = True

    def write(self, text: str) -> None:
        """Print text as it is, at once; a terminal gets no control characters."""
        if not text:
            return
        self.at_start = text.endswith("\n")
        self._put(_CONTROLS.sub("", text) if self.is_terminal else text)

    def _put(self, text: str) -> None:
        if self._gone is not None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except BrokenPipeError as error:
            self._gone = error

    def check(self) -> None:
        """:raises BrokenPipeError: if the reader went away before the end"""
        if self._gone is not None:
            raise self._gone

    def end_line(self) -> None:
        """Go to the start of a line."""
        if not self.at_start:
            self.write("\n")

    def dim(self, text: str) -> None:
        """Print a line that is no more than a remark."""
        self.end_line()
        self._put(self.dimmed(_CONTROLS.sub("", text)) + "\n")

    def draw(self, text: str) -> None:
        """Put a text in place of the line that the cursor is in."""
        self._put(f"\r\x1b[K{text}")

    def dimmed(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[22m" if self._colours else text

    def bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[22m" if self._colours else text


def outputs(stdout: TextIO | None = None) -> tuple[Output, Output]:
    """Standard output and error, which print any text, whatever the locale can encode."""
    out = sys.stdout if stdout is None else stdout
    for stream in (out, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    return Output(out), Output(sys.stderr)


def _wants_colours() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def one_line(text: str, width: int = 100) -> str:
    """Text as one line of at most ``width`` characters, without control characters."""
    line = _CONTROLS.sub("", " ".join(text.split()))
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def many(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun: ``1 entry``, ``2 entries``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def columns(text: str) -> int:
    """How many columns a text takes on a terminal."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows under their heads, in columns as wide as they need."""
    lines = [tuple(heads), *(tuple(one_line(cell, 60) for cell in row) for row in rows)]
    widths = [max(columns(line[n]) for line in lines) for n in range(len(heads))]
    return [
        "  ".join(
            cell + " " * (width - columns(cell)) for cell, width in zip(line, widths, strict=True)
        ).rstrip()
        for line in lines
    ]
