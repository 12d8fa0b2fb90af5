"""Completion menu for the text at the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.widgets import OptionList
from textual.widgets.option_list import Option

if TYPE_CHECKING:
    from clew.wire.results import Completions


class CompletionMenu(OptionList, can_focus=False):
    """List of completions above the prompt, which keeps the keyboard focus."""

    DEFAULT_CSS = """
    CompletionMenu { height: auto; max-height: 6; border: none; padding: 0 1; display: none;
        background: $panel; scrollbar-size-vertical: 1; }
    CompletionMenu.open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(id="proposals")
        self.completions: Completions | None = None
        #: The text for which the completions were made.
        self._source_text = ""

    @property
    def is_open(self) -> bool:
        return self.has_class("open")

    def show_completions(self, found: Completions | None, *, of: str = "") -> None:
        """Show completions for the text ``of``, or none."""
        self.completions, self._source_text = found, of
        items = found.items if found else []
        self.set_class(bool(items), "open")
        self.clear_options()
        for item in items:
            text = Text.assemble((item.text.strip(), "bold"), f"  {item.help}", no_wrap=True)
            text.overflow = "ellipsis"
            self.add_option(Option(text))
        if items:
            self.highlighted = 0

    def move_highlight(self, step: int) -> None:
        count = self.option_count
        if count:
            self.highlighted = ((self.highlighted or 0) + step) % count

    def apply_completion(self, text: str) -> str | None:
        """Return the text with the chosen completion; ``None`` if it was for another text."""
        if self.completions is None or self.highlighted is None or text != self._source_text:
            return None
        item = self.completions.items[self.highlighted]
        return text[: self.completions.start] + item.text + text[self.completions.end :]
