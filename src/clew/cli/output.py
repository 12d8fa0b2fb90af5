"""Terminal output: colours, removal of control characters, tables."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import unicodedata
from typing import TYPE_CHECKING, Final, TextIO

from clew.core.escapes import strip_controls

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Output:
    """
    A stream that people or programs read.

    If the reader closes it (``| head``) no turn ends: the rest is dropped,
    ``raise_if_closed`` reports it.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        #: True if it is a terminal.
        self.is_terminal: Final = stream.isatty()
        self._colours = self.is_terminal and _use_colours()
        self._gone: BrokenPipeError | None = None
        #: True if the next character begins a line.
        self.at_start = True

    def write(self, text: str) -> None:
        """Write and flush text; control characters are removed on a terminal."""
        if not text:
            return
        self.at_start = text.endswith("\n")
        self._write_raw(strip_controls(text) if self.is_terminal else text)

    def write_reply(self, text: str) -> None:
        """Write the lines of a text, on a terminal broken between words."""
        if self.is_terminal:
            width = max(20, shutil.get_terminal_size().columns - 1)
            text = "\n".join(_wrap_line(line, width) for line in text.split("\n"))
        self.write(text.rstrip("\n") + "\n")

    def _write_raw(self, text: str) -> None:
        if self._gone is not None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except BrokenPipeError as error:
            self._gone = error

    def raise_if_closed(self) -> None:
        """
        Raise the error of a closed stream.

        :raises BrokenPipeError: if the reader closed it before the end
        """
        if self._gone is not None:
            raise self._gone

    def end_line(self) -> None:
        """Start a new line unless at the start of one."""
        if not self.at_start:
            self.write("\n")

    def print_dim(self, text: str) -> None:
        """Print a remark on a line of its own."""
        self.end_line()
        self._write_raw(self.style_dim(strip_controls(text)) + "\n")

    def redraw_line(self, text: str) -> None:
        """Replace the line of the cursor."""
        self._write_raw(f"\r\x1b[K{text}")

    def style_dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[22m" if self._colours else text

    def style_bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[22m" if self._colours else text


def _wrap_line(line: str, width: int) -> str:
    if display_width(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def get_outputs(stdout: TextIO | None = None) -> tuple[Output, Output]:
    """Return standard output and error, which replace characters that they cannot encode."""
    out = sys.stdout if stdout is None else stdout
    for stream in (out, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    return Output(out), Output(sys.stderr)


def _use_colours() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def to_single_line(text: str, width: int = 100) -> str:
    """Return the text as one line of at most ``width`` characters, without control characters."""
    line = strip_controls(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def pluralize(count: int, one: str, many: str | None = None) -> str:
    """Format a count with its noun: ``1 entry``, ``2,000 entries``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def display_width(text: str) -> int:
    """Return the number of terminal columns of a text."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def format_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return rows under their headings, in columns as wide as needed."""
    lines = [tuple(heads), *(tuple(to_single_line(cell, 60) for cell in row) for row in rows)]
    widths = [max(display_width(line[n]) for line in lines) for n in range(len(heads))]
    return [
        "  ".join(
            cell + " " * (width - display_width(cell))
            for cell, width in zip(line, widths, strict=True)
        ).rstrip()
        for line in lines
    ]
