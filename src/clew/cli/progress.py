"""Progress display on a terminal."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Generator

    from clew.cli.output import Output

_BAR_WIDTH: Final = 30
#: Seconds between redraws of a bar.
_REDRAW_INTERVAL: Final = 0.1


class StatusLine:
    """A terminal line that shows the current activity."""

    def __init__(self, notes: Output) -> None:
        self._notes = notes

    def show_activity(self, what: str) -> None:
        if self._notes.is_terminal:
            click.echo(f"\r\x1b[K{what} …", err=True, nl=False)

    def clear_line(self) -> None:
        if self._notes.is_terminal:
            click.echo("\r\x1b[K", err=True, nl=False)


class ProgressBar:
    """A terminal line that shows the progress of one task."""

    def __init__(self, notes: Output, what: str, *, total: int) -> None:
        self._notes, self._what, self._total = notes, what, total
        self._next = 0.0

    def update(self, done: int) -> None:
        """Show that ``done`` of the total is done."""
        now = time.monotonic()
        if self._notes.is_terminal and now >= self._next:
            self._next = now + _REDRAW_INTERVAL
            self._notes.redraw_line(f"{self._what} {_render_bar(done, self._total)}")

    def clear_line(self) -> None:
        """Remove the bar before other output."""
        if self._notes.is_terminal and self._next:
            self._notes.redraw_line("")


class RateLine:
    """A terminal line that shows how much of a task is done, its rate, and the time left."""

    def __init__(self, notes: Output, what: str, unit: str, *, total: int | None = None) -> None:
        self._notes, self._what, self._unit, self._total = notes, what, unit, total
        self._started, self._next = time.monotonic(), 0.0

    def update(self, done: int) -> None:
        """Show that ``done`` units are done."""
        now = time.monotonic()
        if self._notes.is_terminal and now >= self._next:
            self._next = now + _REDRAW_INTERVAL
            self._notes.redraw_line(self._describe(done, max(now - self._started, 0.001)))

    def _describe(self, done: int, passed: float) -> str:
        rate = done / passed
        bar = f" {_render_bar(done, self._total)}" if self._total else ""
        line = f"{self._what}{bar} {done:,} {self._unit}, {rate:,.0f}/s"
        if not self._total or not rate:
            return line
        return f"{line}, {max(0.0, (self._total - done) / rate):,.0f} s left"

    def clear_line(self) -> None:
        """Remove the line before other output."""
        if self._notes.is_terminal and self._next:
            self._notes.redraw_line("")


class StageProgressBar:
    """A progress bar for successive stages, each with its own total."""

    def __init__(self, notes: Output) -> None:
        self._notes = notes
        self._next = 0.0
        self._what = ""

    def update(self, what: str, done: int, total: int) -> None:
        """Show the progress of stage ``what``; a ``total`` of 0 is unknown."""
        now = time.monotonic()
        if self._notes.is_terminal and (now >= self._next or what != self._what):
            self._next = now + _REDRAW_INTERVAL
            self._what = what
            self._notes.redraw_line(f"{what} {_render_bar(done, total) if total else '…'}")

    def clear_line(self) -> None:
        """Remove the bar before other output."""
        if self._notes.is_terminal and self._what:
            self._notes.redraw_line("")


@contextmanager
def stage_progress(notes: Output) -> Generator[StageProgressBar]:
    """Yield a progress bar, and remove it at the end of the block."""
    drawn = StageProgressBar(notes)
    try:
        yield drawn
    finally:
        drawn.clear_line()


def _render_bar(done: int, total: int) -> str:
    share = min(1.0, done / total) if total else 1.0
    filled = round(share * _BAR_WIDTH)
    return f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {share:4.0%}"
