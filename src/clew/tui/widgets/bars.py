"""Bars around the conversation: title, status, queue, approvals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text
from textual.widgets import Static

from clew.tui.state.labels import (
    approval_summary,
    commands_summary,
    context_gauge,
    queue_lines,
    sending_lines,
    status_text,
)
from clew.tui.state.view import LinkState

if TYPE_CHECKING:
    from clew.tui.state.view import ViewState

#: Width from which the status bar has room for more keys.
_WIDE_COLUMNS = 70
#: Waiting inputs that are shown.
_MAX_SHOWN = 3


def _justify(left: Text, right: Text) -> Table:
    """Return two texts at the two ends of a line; the left one is cut if both do not fit."""
    line = Table.grid(expand=True, padding=(0, 1, 0, 0))
    line.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    line.add_column(justify="right", no_wrap=True)
    line.add_row(left, right)
    return line


class TitleBar(Static):
    """Bar with the conversation, its model, the context size and the cost."""

    DEFAULT_CSS = """
    TitleBar { height: 1; background: $panel; color: $text; padding: 0 1; }
    """

    def show_view(self, view: ViewState) -> None:
        model = view.state.model if view.state else ""
        left = Text.assemble((view.title or "clew", "bold"), f"  {model}")
        self.update(_justify(left, Text(context_gauge(view.usage))))


class StatusBar(Static):
    """Bar with the status and the relevant keys."""

    DEFAULT_CSS = """
    StatusBar { height: 1; background: $panel; color: $text-muted; padding: 0 1; }
    StatusBar.lost { color: $text-warning; text-style: bold; }
    """

    def show_view(self, view: ViewState) -> None:
        self.set_class(view.link is LinkState.LOST, "lost")
        told = status_text(view)
        width = self.screen.size.width - len(told)
        self.update(_justify(Text(told), Text(_key_hints(view, width))))


def _key_hints(view: ViewState, width: int) -> str:
    """Return the relevant keys, as many as fit beside the status."""
    if view.approvals:
        return "^G allow or deny · ? keys"
    if view.is_running:
        return "Esc stop · ^S steer · ? keys"
    if width < _WIDE_COLUMNS:
        return "? keys · ^D leave"
    return "^O conversations · ^T lineage · ^L model · ? keys · ^D leave"


class CommandBar(Static):
    """Line with the commands that go on in the background."""

    DEFAULT_CSS = """
    CommandBar { height: 1; padding: 0 1; color: $text-muted; display: none; }
    CommandBar.some { display: block; }
    """

    def show_view(self, view: ViewState) -> None:
        told = commands_summary(view)
        self.set_class(bool(told), "some")
        self.update(_justify(Text(f"⚙ {told}"), Text("/ps shows more", style="italic")))


class QueueBar(Static):
    """List of waiting inputs, in order."""

    DEFAULT_CSS = """
    QueueBar { height: auto; padding: 0 1; color: $text-muted; display: none; }
    QueueBar.some { display: block; }
    """

    def show_view(self, view: ViewState) -> None:
        lines, sending = queue_lines(view), sending_lines(view)
        self.set_class(bool(lines or sending), "some")
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(
            "\n".join(_limit_lines([f"⧗ {n}. {line}" for n, line in enumerate(lines, start=1)]))
        )
        if lines:
            text.append("   F6 edits", style="italic")
        if lines and sending:
            text.append("\n")
        text.append("\n".join(_limit_lines([f"↑ {line}" for line in sending])))
        self.update(text)


def _limit_lines(lines: list[str]) -> list[str]:
    """Return the first lines, and the number of further ones."""
    more = len(lines) - _MAX_SHOWN
    return [*lines[:_MAX_SHOWN], f"  and {more} more"] if more > 0 else lines


class ApprovalBar(Static):
    """
    Notice that a tool call waits for approval.

    It takes no keys, so that typing is not interrupted. F7 opens the approval screen.
    """

    DEFAULT_CSS = """
    ApprovalBar { height: auto; max-height: 3; padding: 0 1; display: none;
        background: $warning 20%; }
    ApprovalBar.open { display: block; }
    """

    def show_view(self, view: ViewState) -> None:
        waiting = list(view.approvals)
        self.set_class(bool(waiting), "open")
        if not waiting:
            self.update("")
            return
        more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
        self.update(
            Text.assemble(
                ("Waiting for your approval: ", "bold"),
                f"{approval_summary(waiting[0])}{more}",
                "\nF7 shows all of it and answers",
                no_wrap=True,
                overflow="ellipsis",
            )
        )
