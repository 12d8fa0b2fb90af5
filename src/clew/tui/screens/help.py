"""Help screen with all keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from rich.table import Table
from rich.text import Text
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from clew.tui.screens.dialog import Dialog

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

KEY_HELP: Final = (
    ("Enter", "send; during an answer, after it"),
    ("Ctrl-J", "a new line (also Shift-Enter, Alt-Enter, or \\ before Enter)"),
    ("Ctrl-S", "send into the running turn (steer)"),
    ("Esc", "stop the answer; its text so far is kept"),
    ("Up, Down", "earlier texts, at the first and the last line"),
    ("/ and @", "commands and files; Tab accepts the suggestion"),
    ("Tab", "select messages: Up and Down choose one"),
    ("", "Enter opens or closes it, A opens all, Y copies it"),
    ("", "R rewinds to it, B branches there, Esc leaves"),
    ("PgUp, PgDn", "scroll"),
    ("F1, ?", "the keys; ? in an empty prompt"),
    ("F2, Ctrl-O", "conversations: search, open, new, delete"),
    ("F3, Ctrl-T", "lineage: which session continued which, and why"),
    ("F4, Ctrl-R", "compaction: preview and run; Ctrl-U undoes it"),
    ("F5, Ctrl-L", "the model of this conversation"),
    ("F6, Ctrl-N", "waiting messages: change or cancel them"),
    ("F7, Ctrl-G", "tool calls that wait for approval: allow or deny"),
    ("Ctrl-P", "all actions by name, themes too"),
    ("Ctrl-C", "clear the prompt, stop the answer; pressed twice: leave"),
    ("Ctrl-D", "leave, in an empty prompt (also Ctrl-Q, /quit)"),
    ("Ctrl-Z", "stop the program; fg continues it (Ctrl-_ undoes)"),
)
#: The most used keys, for a few lines above the prompt.
_SHORT_HELP: Final = (
    ("Enter", "send"), ("^J", "new line"), ("/ @", "commands, files"),
    ("Tab", "point at messages"), ("Esc", "stop the answer"), ("^S", "steer"),
    ("^O", "conversations"), ("^T", "lineage"), ("^R", "summarise"),
    ("^L", "model"), ("^N", "waiting messages"), ("^G", "approvals"),
    ("^P", "all by name"), ("^C ^C", "leave"), ("F1", "all keys"),
)  # fmt: skip
#: Width of one key and its description.
_COLUMN_WIDTH: Final = 25


def build_overview(width: int) -> Table:
    """Return the most used keys, in as many columns as fit."""
    across = max(1, min(3, width // _COLUMN_WIDTH))
    table = Table.grid(padding=(0, 2, 0, 0))
    for start in range(0, len(_SHORT_HELP), across):
        row = _SHORT_HELP[start : start + across]
        table.add_row(
            *(cell for key, does in row for cell in (Text(key, style="bold"), Text(does)))
        )
    return table


class HelpScreen(Dialog[None]):
    """Help screen; Escape, Enter and F1 close it."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen VerticalScroll { width: 76; max-width: 100%; height: auto; max-height: 100%;
        background: $surface; padding: 0 1; border: round $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,f1,q", "leave", "Leave")]

    def compose(self) -> ComposeResult:
        table = Table.grid(padding=(0, 2, 0, 0))
        for key, does in KEY_HELP:
            table.add_row(Text(key, style="bold"), Text(does))
        with VerticalScroll():
            yield Static(table)

    def action_leave(self) -> None:
        self.close(None)
