"""Picker: a list with a search field."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from clew.record import Record
from clew.tui.screens.dialog import Dialog
from clew.tui.widgets.ordered_keys import SingleLineInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType


class PickerItem(Record):
    """Item of a list."""

    key: str
    text: str
    #: Secondary text beside it.
    more: str = ""
    marked: bool = False


class PickerResult(Record):
    """Chosen item, and the requested action."""

    key: str
    action: str = "open"
    #: Its displayed text.
    text: str = ""


class Picker(Dialog[PickerResult]):
    """List where Up and Down move, Enter chooses, Escape cancels and typing filters."""

    DEFAULT_CSS = """
    Picker { align: center middle; }
    Picker #box { width: 90%; max-width: 100; height: 80%; background: $surface; padding: 0 1;
        border: round $primary; }
    Picker #title { text-style: bold; height: auto; }
    Picker Input { background: $panel; margin: 0 0 1 0; }
    Picker OptionList { border: none; height: 1fr; background: $surface; padding: 0; }
    Picker #keys { color: $text-muted; height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave"),
        Binding("enter", "pick('open')", "Take"),
        Binding("up", "move(-1)", "Up"),
        Binding("down", "move(1)", "Down"),
        Binding("pageup", "move(-10)", "Up", show=False),
        Binding("pagedown", "move(10)", "Down", show=False),
    ]
    #: Key help, shown below the list.
    keys = "Enter opens · Esc leaves"
    heading = ""

    def __init__(self, choices: Sequence[PickerItem] = ()) -> None:
        super().__init__()
        self._choices = list(choices)

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(self.heading, id="title")
            yield SingleLineInput(placeholder="type to search", id="query", compact=True)
            yield OptionList(id="choices", compact=True)
            yield Static(self.keys, id="keys")

    def on_mount(self) -> None:
        self.show_items(self._choices)

    def show_items(self, choices: Sequence[PickerItem]) -> None:
        """Show these items."""
        if not self.is_open:
            return
        self._choices = list(choices)
        options = self.query_one("#choices", OptionList)
        options.clear_options()
        for choice in self._choices:
            mark = "● " if choice.marked else "  "
            text = Text.assemble(mark, (choice.text, "bold"), f"  {choice.more}", no_wrap=True)
            text.overflow = "ellipsis"
            options.add_option(Option(text))
        if self._choices:
            marked = (n for n, choice in enumerate(self._choices) if choice.marked)
            options.highlighted = next(marked, 0)

    @property
    def highlighted_item(self) -> PickerItem | None:
        at = self.query_one("#choices", OptionList).highlighted
        return self._choices[at] if at is not None and at < len(self._choices) else None

    def action_move(self, step: int) -> None:
        options = self.query_one("#choices", OptionList)
        if options.option_count:
            at = (options.highlighted or 0) + step
            options.highlighted = min(max(at, 0), options.option_count - 1)

    def action_leave(self) -> None:
        self.close(None)

    def action_pick(self, deed: str) -> None:
        if self.is_list_current and (chosen := self.highlighted_item) is not None:
            self.close(PickerResult(key=chosen.key, action=deed, text=chosen.text))

    @property
    def is_list_current(self) -> bool:
        """Return whether the list matches the search field."""
        return True

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_pick("open")


class FilterPicker(Picker):
    """Picker that filters a complete list locally."""

    def __init__(self, choices: Sequence[PickerItem], *, heading: str) -> None:
        super().__init__(choices)
        self._all = list(choices)
        self.heading = heading
        self._applied_query = ""

    def on_input_changed(self) -> None:
        self._apply_filter()

    @property
    def is_list_current(self) -> bool:
        self._apply_filter()
        return True

    def _apply_filter(self) -> None:
        """List the items that match the field; an up-to-date list is kept."""
        query = self.query_one("#query", Input).value
        if query == self._applied_query:
            return
        self._applied_query = query
        wanted = query.lower().split()
        self.show_items(
            [
                choice
                for choice in self._all
                if all(word in f"{choice.text} {choice.more}".lower() for word in wanted)
            ]
        )
