"""Edit dialog for a text, such as a waiting message."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Static

from clew.tui.screens.dialog import Dialog
from clew.tui.widgets.ordered_keys import MultiLineInput

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType


class EditDialog(Dialog[str]):
    """Dialog where Ctrl-S saves the text and Escape discards the change."""

    DEFAULT_CSS = """
    EditDialog { align: center middle; }
    EditDialog #box { width: 90%; max-width: 100; height: 60%; background: $surface; padding: 0 1;
        border: round $primary; }
    EditDialog TextArea { height: 1fr; }
    EditDialog #keys { color: $text-muted; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave"),
        Binding("ctrl+s", "keep", "Keep"),
    ]

    def __init__(self, heading: str, text: str) -> None:
        super().__init__()
        self._heading, self._text = heading, text

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(self._heading)
            yield MultiLineInput(self._text, id="text", compact=True)
            yield Static("^S saves · Esc discards", id="keys")

    def on_mount(self) -> None:
        self.query_one(MultiLineInput).move_cursor(self.query_one(MultiLineInput).document.end)

    def action_keep(self) -> None:
        self.close(self.query_one(MultiLineInput).text)

    def action_leave(self) -> None:
        self.close(None)
