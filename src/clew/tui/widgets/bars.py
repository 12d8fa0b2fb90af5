"""The lines around the conversation: title, what goes on, what waits, questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text
from textual.widgets import Static

from clew.tui.state.view import Link
from clew.tui.state.words import asked, doing, gauge, on_their_way, queued

if TYPE_CHECKING:
    from clew.tui.state.view import View

#: Columns from which the last line has room for more keys.
_WIDE = 70
#: Inputs that are shown of those that wait.
_WAITING = 3


def _apart(left: Text, right: Text) -> Table:
    """Two texts at the two ends of a line; the left one is cut where both do not fit."""
    line = Table.grid(expand=True, padding=(0, 1, 0, 0))
    line.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    line.add_column(justify="right", no_wrap=True)
    line.add_row(left, right)
    return line


class TitleBar(Static):
    """The conversation and its model; how full the context is, what it cost."""

    DEFAULT_CSS = """
    TitleBar { height: 1; background: $panel; color: $text; padding: 0 1; }
    """

    def show(self, view: View) -> None:
        model = view.state.model if view.state else ""
        left = Text.assemble((view.title or "clew", "bold"), f"  {model}")
        self.update(_apart(left, Text(gauge(view.usage))))


class StatusBar(Static):
    """What goes on, and the keys that matter now."""

    DEFAULT_CSS = """
    StatusBar { height: 1; background: $panel; color: $text-muted; padding: 0 1; }
    StatusBar.lost { color: $text-warning; text-style: bold; }
    """

    def show(self, view: View) -> None:
        self.set_class(view.link is Link.LOST, "lost")
        told = doing(view)
        width = self.screen.size.width - len(told)
        self.update(_apart(Text(told), Text(_keys(view, width))))


def _keys(view: View, width: int) -> str:
    """The keys that matter now, as many as there is room for beside a sentence."""
    if view.approvals:
        return "^G allow or deny · ? keys"
    if view.is_running:
        return "Esc stop · ^S steer · ? keys"
    if width < _WIDE:
        return "? keys · ^D leave"
    return "^O conversations · ^T lineage · ^L model · ? keys · ^D leave"


class Waiting(Static):
    """The inputs that wait, in order."""

    DEFAULT_CSS = """
    Waiting { height: auto; padding: 0 1; color: $text-muted; display: none; }
    Waiting.some { display: block; }
    """

    def show(self, view: View) -> None:
        lines, sending = queued(view), on_their_way(view)
        self.set_class(bool(lines or sending), "some")
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append("\n".join(_some([f"⧗ {n}. {line}" for n, line in enumerate(lines, start=1)])))
        if lines:
            text.append("   F6 edits", style="italic")
        if lines and sending:
            text.append("\n")
        text.append("\n".join(_some([f"↑ {line}" for line in sending])))
        self.update(text)


def _some(lines: list[str]) -> list[str]:
    """The first lines, and how many there are behind them."""
    more = len(lines) - _WAITING
    return [*lines[:_WAITING], f"  and {more} more"] if more > 0 else lines


class Question(Static):
    """
    Says that a tool call waits for approval.

    It takes no keys: whoever is typing goes on typing. F7 leads to all of it, and the answer.
    """

    DEFAULT_CSS = """
    Question { height: auto; max-height: 3; padding: 0 1; display: none; background: $warning 20%; }
    Question.open { display: block; }
    """

    def show(self, view: View) -> None:
        waiting = list(view.approvals)
        self.set_class(bool(waiting), "open")
        if not waiting:
            self.update("")
            return
        more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
        self.update(
            Text.assemble(
                ("Waiting for your approval: ", "bold"),
                f"{asked(waiting[0])}{more}",
                "\nF7 shows all of it and answers",
                no_wrap=True,
                overflow="ellipsis",
            )
        )
