"""A list to choose from, with a line to search in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from clew.tui.screens.dialog import Dialog
from clew.tui.widgets.in_order import Line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """Something to choose."""

    key: str
    text: str
    #: Beside it, paler.
    more: str = ""
    marked: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Picked:
    """What was chosen, and what is to be done with it."""

    key: str
    deed: str = "open"
    #: As it was shown.
    text: str = ""


class Picker(Dialog[Picked]):
    """Up and down choose, Enter takes, Escape leaves; what is typed narrows the list."""

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
    #: What the keys do, shown below.
    keys = "Enter opens · Esc leaves"
    heading = ""

    def __init__(self, choices: Sequence[Choice] = ()) -> None:
        super().__init__()
        self._choices = list(choices)

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(self.heading, id="title")
            yield Line(placeholder="type to search", id="query", compact=True)
            yield OptionList(id="choices", compact=True)
            yield Static(self.keys, id="keys")

    def on_mount(self) -> None:
        self.offer(self._choices)

    def offer(self, choices: Sequence[Choice]) -> None:
        """Show these."""
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
    def chosen(self) -> Choice | None:
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
        if self.is_listed and (chosen := self.chosen) is not None:
            self.close(Picked(key=chosen.key, deed=deed, text=chosen.text))

    @property
    def is_listed(self) -> bool:
        """Whether what is listed was found with what stands in the line."""
        return True

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_pick("open")


class Narrowing(Picker):
    """A list that is there as a whole: what is typed narrows it here."""

    def __init__(self, choices: Sequence[Choice], *, heading: str) -> None:
        super().__init__(choices)
        self._all = list(choices)
        self.heading = heading
        self._narrowed_by = ""

    def on_input_changed(self) -> None:
        self._narrow()

    @property
    def is_listed(self) -> bool:
        self._narrow()
        return True

    def _narrow(self) -> None:
        """List what fits the line; what is listed already stays as it is."""
        query = self.query_one("#query", Input).value
        if query == self._narrowed_by:
            return
        self._narrowed_by = query
        wanted = query.lower().split()
        self.offer(
            [
                choice
                for choice in self._all
                if all(word in f"{choice.text} {choice.more}".lower() for word in wanted)
            ]
        )
