"""The page of keys."""

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

KEYS: Final = (
    ("Enter", "send; while an answer is made, after it"),
    ("Ctrl-J", "a new line (also Shift-Enter, Alt-Enter, or \\ before Enter)"),
    ("Ctrl-S", "send into the running turn (steer)"),
    ("Esc", "stop the answer; what it has said is kept"),
    ("Up, Down", "earlier texts, at the first and the last line"),
    ("/ and @", "commands and files; Tab takes what is offered"),
    ("Tab", "point at messages: Up and Down choose one"),
    ("", "Enter opens or closes it, A opens all, Y copies it"),
    ("", "R goes back to it, B branches there, Esc leaves"),
    ("PgUp, PgDn", "scroll"),
    ("F2", "conversations: search, open, new, delete"),
    ("F3", "sessions: which continued which, and why"),
    ("F4", "summary: what would go and stay; Ctrl-U takes it back"),
    ("F5", "the model of this conversation"),
    ("F6", "what waits: change it or take it back"),
    ("F7", "tool calls that wait for approval: look at them, allow or deny"),
    ("Ctrl-P", "everything by name, themes too"),
    ("Ctrl-C", "stop the answer; what is marked it copies"),
    ("Ctrl-Q", "leave; a running turn goes on where a server runs"),
)


class Keys(Dialog[None]):
    """Any of Escape, Enter and F1 leaves."""

    DEFAULT_CSS = """
    Keys { align: center middle; }
    Keys VerticalScroll { width: 76; max-width: 100%; height: auto; max-height: 90%;
        background: $surface; padding: 0 1; border: round $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,f1,q", "leave", "Leave")]

    def compose(self) -> ComposeResult:
        table = Table.grid(padding=(0, 2, 0, 0))
        for key, does in KEYS:
            table.add_row(Text(key, style="bold"), Text(does))
        with VerticalScroll():
            yield Static(table)

    def action_leave(self) -> None:
        self.close(None)
