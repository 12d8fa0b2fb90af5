"""Activity line above the prompt: what the agent does, and for how long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual.widgets import Static

from clew.tui.state.labels import format_duration
from clew.tui.state.view import LinkState, ToolProgress
from clew.tui.text.sanitize import strip_controls

if TYPE_CHECKING:
    from textual.timer import Timer

    from clew.tui.state.view import ViewState

_FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
#: Seconds between two frames.
_FRAME_INTERVAL: Final = 0.1
#: Approximate characters per token of uncounted text.
_CHARS_PER_TOKEN: Final = 4


class ActivityBar(Static):
    """Activity line; counts a turn's seconds from when this screen first saw it."""

    DEFAULT_CSS = """
    ActivityBar { height: 1; padding: 0 1; color: $accent; display: none; }
    ActivityBar.open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(id="activity")
        self._turn_id, self._started_at = "", 0.0
        self._view: ViewState | None = None
        self._timer: Timer | None = None

    def show_view(self, view: ViewState) -> None:
        """Show the activity; hidden while nothing runs or an approval is open."""
        turn = view.state.turn if view.state else None
        is_open = turn is not None and view.link is LinkState.UP and not view.approvals
        self._view = view if is_open else None
        self.set_class(is_open, "open")
        if turn is not None and turn.id != self._turn_id:
            self._turn_id, self._started_at = turn.id, time.monotonic()
        if is_open and self._timer is None:
            self._timer = self.set_interval(_FRAME_INTERVAL, self._update_text)
        elif not is_open and self._timer is not None:
            self._timer.stop()
            self._timer = None
        if is_open:
            self._update_text()

    def _update_text(self) -> None:
        if self._view is None:
            return
        seconds = time.monotonic() - self._started_at
        frame = _FRAMES[int(seconds / _FRAME_INTERVAL) % len(_FRAMES)]
        text = Text(f"{frame} {activity_label(self._view)}", no_wrap=True, overflow="ellipsis")
        text.append(
            f"  {_format_seconds(seconds)}{_format_tokens(self._view)} · Esc stops", style="dim"
        )
        self.update(text)


def activity_label(view: ViewState) -> str:
    """Return what a running turn is doing now."""
    if view.state is not None and view.state.turn is not None and view.state.turn.stopping:
        return "Stopping…"
    if view.live.text:
        return "Answering…"
    running = [
        block.tool.name
        for block in view.blocks
        if block.tool is not None
        and block.tool.progress is ToolProgress.RUNNING
        and block.turn == view.live.turn
    ]
    return f"Running {strip_controls(running[-1])}…" if running else "Thinking…"


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 60 else format_duration(seconds)


def _format_tokens(view: ViewState) -> str:
    count = (len(view.live.text) + len(view.live.thinking)) // _CHARS_PER_TOKEN
    return f" · about {count:,} tokens" if count else ""
