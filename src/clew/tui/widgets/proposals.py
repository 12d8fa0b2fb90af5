"""What may stand where the cursor is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.widgets import OptionList
from textual.widgets.option_list import Option

if TYPE_CHECKING:
    from clew.wire.results import Completions


class Proposals(OptionList, can_focus=False):
    """A list above the prompt; the prompt has the keys."""

    DEFAULT_CSS = """
    Proposals { height: auto; max-height: 6; border: none; padding: 0 1; display: none;
        background: $panel; scrollbar-size-vertical: 1; }
    Proposals.open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(id="proposals")
        self.found: Completions | None = None
        #: What stood there when this was proposed.
        self._of = ""

    @property
    def is_open(self) -> bool:
        return self.has_class("open")

    def offer(self, found: Completions | None, *, of: str = "") -> None:
        """Show proposals for the text ``of``, or none."""
        self.found, self._of = found, of
        items = found.items if found else []
        self.set_class(bool(items), "open")
        self.clear_options()
        for item in items:
            text = Text.assemble((item.text.strip(), "bold"), f"  {item.help}", no_wrap=True)
            text.overflow = "ellipsis"
            self.add_option(Option(text))
        if items:
            self.highlighted = 0

    def move(self, step: int) -> None:
        count = self.option_count
        if count:
            self.highlighted = ((self.highlighted or 0) + step) % count

    def taken(self, text: str) -> str | None:
        """The text with the chosen proposal in it; ``None`` if it was for another text."""
        if self.found is None or self.highlighted is None or text != self._of:
            return None
        item = self.found.items[self.highlighted]
        return text[: self.found.start] + item.text + text[self.found.end :]
