"""A line above the prompt while the agent works: what it does, and for how long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual.widgets import Static

from clew.tui.state.view import Link, Progress
from clew.tui.state.words import duration
from clew.tui.text.clean import clean

if TYPE_CHECKING:
    from textual.timer import Timer

    from clew.tui.state.view import View

_FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
#: Seconds between two frames.
_PACE: Final = 0.1
#: Characters of a token, roughly, in text that nobody has counted yet.
_PER_TOKEN: Final = 4


class Activity(Static):
    """Counts the seconds of a turn from when this screen first saw it."""

    DEFAULT_CSS = """
    Activity { height: 1; padding: 0 1; color: $accent; display: none; }
    Activity.open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(id="activity")
        self._turn, self._begun = "", 0.0
        self._view: View | None = None
        self._timer: Timer | None = None

    def show(self, view: View) -> None:
        """Show what goes on; nothing where nothing does, or where a person is asked."""
        turn = view.state.turn if view.state else None
        is_open = turn is not None and view.link is Link.UP and not view.approvals
        self._view = view if is_open else None
        self.set_class(is_open, "open")
        if turn is not None and turn.id != self._turn:
            self._turn, self._begun = turn.id, time.monotonic()
        if is_open and self._timer is None:
            self._timer = self.set_interval(_PACE, self._tick)
        elif not is_open and self._timer is not None:
            self._timer.stop()
            self._timer = None
        if is_open:
            self._tick()

    def _tick(self) -> None:
        if self._view is None:
            return
        seconds = time.monotonic() - self._begun
        frame = _FRAMES[int(seconds / _PACE) % len(_FRAMES)]
        text = Text(f"{frame} {doing(self._view)}", no_wrap=True, overflow="ellipsis")
        text.append(f"  {_whole(seconds)}{_tokens(self._view)} · Esc stops", style="dim")
        self.update(text)


def doing(view: View) -> str:
    """What a running turn is doing now."""
    if view.state is not None and view.state.turn is not None and view.state.turn.stopping:
        return "Stopping…"
    if view.live.text:
        return "Answering…"
    running = [
        block.tool.name
        for block in view.blocks
        if block.tool is not None
        and block.tool.progress is Progress.RUNNING
        and block.turn == view.live.turn
    ]
    return f"Running {clean(running[-1])}…" if running else "Thinking…"


def _whole(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 60 else duration(seconds)


def _tokens(view: View) -> str:
    count = (len(view.live.text) + len(view.live.thinking)) // _PER_TOKEN
    return f" · about {count:,} tokens" if count else ""
