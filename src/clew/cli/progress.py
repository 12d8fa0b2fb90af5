"""What is being done, while it takes."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Generator

    from clew.cli.terminal import Output

_WIDTH: Final = 30
#: Seconds between two drawings of a bar.
_PAUSE: Final = 0.1


class Progress:
    """A line on a terminal that says what is being done, until something is printed."""

    def __init__(self, notes: Output) -> None:
        self._notes = notes

    def say(self, what: str) -> None:
        if self._notes.is_terminal:
            click.echo(f"\r\x1b[K{what} …", err=True, nl=False)

    def clear(self) -> None:
        if self._notes.is_terminal:
            click.echo("\r\x1b[K", err=True, nl=False)


class Bar:
    """A line on a terminal that says how much of something is done."""

    def __init__(self, notes: Output, what: str, *, total: int) -> None:
        self._notes, self._what, self._total = notes, what, total
        self._next = 0.0

    def show(self, done: int) -> None:
        """So much of the total is done."""
        now = time.monotonic()
        if self._notes.is_terminal and now >= self._next:
            self._next = now + _PAUSE
            self._notes.draw(f"{self._what} {_bar(done, self._total)}")

    def clear(self) -> None:
        """Take the bar away, before something is printed."""
        if self._notes.is_terminal and self._next:
            self._notes.draw("")


class Stages:
    """A bar for work that does one thing after another, each with a total of its own."""

    def __init__(self, notes: Output) -> None:
        self._notes = notes
        self._next = 0.0
        self._what = ""

    def tell(self, what: str, done: int, total: int) -> None:
        """``what`` is done so far; a ``total`` of 0 is one that is not known."""
        now = time.monotonic()
        if self._notes.is_terminal and (now >= self._next or what != self._what):
            self._next = now + _PAUSE
            self._what = what
            self._notes.draw(f"{what} {_bar(done, total) if total else '…'}")

    def clear(self) -> None:
        """Take the bar away, before something is printed."""
        if self._notes.is_terminal and self._what:
            self._notes.draw("")


@contextmanager
def stages(notes: Output) -> Generator[Stages]:
    """Stages for the length of the block."""
    drawn = Stages(notes)
    try:
        yield drawn
    finally:
        drawn.clear()


def _bar(done: int, total: int) -> str:
    share = min(1.0, done / total) if total else 1.0
    filled = round(share * _WIDTH)
    return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {share:4.0%}"
