"""Where a person writes: several lines, history, pastes as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import Binding
from textual.message import Message

from clew.tui.state.folds import Folds
from clew.tui.text.pasted import pasted_text
from clew.tui.widgets.in_order import Lines

if TYPE_CHECKING:
    from textual import events
    from textual.binding import BindingType

    from clew.tui.state.typed import History
    from clew.tui.widgets.proposals import Proposals

#: Keys that belong to the list of proposals while it is open.
_MENU_KEYS: Final = frozenset({"up", "down", "tab", "escape", "enter"})

PLACEHOLDER: Final = "Say something; / for commands, @ for files, ? for keys"
SHORT_PLACEHOLDER: Final = "Say something; ? for keys"


class Prompt(Lines):
    """Enter sends, Ctrl-J begins a line; up and down at the edges look through the history."""

    DEFAULT_CSS = """
    Prompt { height: auto; max-height: 10; border: round $primary 50%; padding: 0 1;
        background: $background; border-subtitle-color: $text-muted; }
    Prompt:focus { border: round $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+underscore", "undo", "Undo"),
        Binding("ctrl+s", "send('steer')", "Send into the running turn"),
        Binding("ctrl+j,shift+enter,alt+enter", "newline", "New line"),
    ]

    @dataclass
    class Sent(Message):
        """A message is to be handed in."""

        text: str
        #: Into the running turn, instead of after it.
        steer: bool

    class Left(Message):
        """Ctrl-D was pressed where nothing is written."""

    @dataclass
    class CutShort(Message):
        """Ctrl-C was pressed; what was written is cleared already."""

        has_cleared: bool

    class Typed(Message):
        """The text, or the place in it, has changed."""

    def __init__(self, history: History, proposals: Proposals) -> None:
        super().__init__(
            id="prompt",
            soft_wrap=True,
            show_line_numbers=False,
            highlight_cursor_line=False,
            tab_behavior="focus",
            placeholder=PLACEHOLDER,
        )
        self.typed = history
        #: While they are open, their keys go before those of the history.
        self._proposals = proposals
        #: Texts that were refused, at the beginning of what stands here.
        self._returned = ""
        self._folds = Folds()

    @property
    def whole_text(self) -> str:
        """The text with long pastes in it."""
        return self._folds.whole(self.text)

    def clear_text(self) -> None:
        """Write anew; the history has what was written."""
        self.typed = self.typed.said(self.whole_text)
        self.text, self._returned, self._folds = "", "", Folds()
        self._proposals.offer(None)

    async def _on_paste(self, event: events.Paste) -> None:
        self._folds, event.text = self._folds.folded(pasted_text(event.text))

    def _cut_short(self) -> None:
        """Copy what is marked, else clear what is written, before the next key is read."""
        if self.selected_text:
            self.action_copy()
            return
        has_cleared = bool(self.text)
        if has_cleared:
            self.clear_text()
        self.post_message(self.CutShort(has_cleared))

    def _delete_fold(self) -> bool:
        """Delete the label before the cursor, and whether there is one."""
        row, column = self.cursor_location
        label = self._folds.label_before(self.document.get_line(row)[:column])
        if not label or self.selected_text:
            return False
        self.delete((row, column - len(label)), (row, column))
        return True

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "ctrl+d" and not self.text:
            event.prevent_default().stop()
            self.post_message(self.Left())
            return
        if event.key == "ctrl+c":
            event.prevent_default().stop()
            self._cut_short()
            return
        if event.key == "backspace" and self._delete_fold():
            event.prevent_default().stop()
            return
        if self._proposals.is_open and event.key in _MENU_KEYS:
            event.prevent_default().stop()
            self._choose(event.key)
            return
        if event.key == "enter":
            event.prevent_default().stop()
            self.action_send("")
            return
        if event.key in ("up", "down") and self._at_edge(event.key):
            event.prevent_default().stop()
            self._look(event.key)
            return
        await super()._on_key(event)

    def _choose(self, key: str) -> None:
        """Carry out a key of the list at once: the next key may be pressed already."""
        proposals = self._proposals
        if key in ("up", "down"):
            proposals.move(1 if key == "down" else -1)
            return
        taken = proposals.taken(self.text) if key != "escape" else None
        proposals.offer(None)
        if taken is not None:
            self.put(taken)
        # Typed faster than anything could be proposed: it is meant as it stands there.
        if key == "enter" and (taken is None or (taken[:1] == "/" and taken[-1:] != " ")):
            self.action_send("")

    def _at_edge(self, key: str) -> bool:
        row, _ = self.cursor_location
        if key == "up":
            return row == 0 and self.typed.at > 0
        return row == self.document.line_count - 1 and self.typed.at < len(self.typed.texts)

    def _look(self, key: str) -> None:
        move = self.typed.back if key == "up" else self.typed.forth
        self.typed, text = move(self.text)
        self.put(text)

    def fit(self, width: int) -> None:
        """Say what to do here on one line of a screen."""
        is_wide = width > len(PLACEHOLDER) + 6
        self.placeholder = PLACEHOLDER if is_wide else SHORT_PLACEHOLDER
        self.border_subtitle = "Enter sends · ^J new line" if is_wide else ""

    def put(self, text: str) -> None:
        """Have a text in place of what stands there, with the cursor at its end."""
        self.text = text
        self.move_cursor(self.document.end)

    def action_newline(self) -> None:
        self.insert("\n")

    def action_send(self, how: str) -> None:
        text = self.whole_text
        if self.text.endswith("\\"):  # for terminals that tell no other key from Enter
            self.put(self.text[:-1] + "\n")
        elif text.strip():
            # Gone from here with the key: the next key can neither send it again nor add to it.
            self.clear_text()
            self.post_message(self.Sent(text, steer=how == "steer"))

    def give_back(self, text: str) -> None:
        """Have a text here again that was not taken, before what was typed since."""
        if not self.text:
            self.put(text)
            self._returned = text
        elif self._returned and self.text.startswith(self._returned):
            at = len(self._returned)
            self._returned += f"\n{text}"
            apart = "" if self.text[at : at + 1] in ("", "\n") else "\n"
            self._insert_at(at, f"\n{text}{apart}")
        else:
            self._returned = text
            self._insert_at(0, f"{text}\n")

    def _insert_at(self, index: int, text: str) -> None:
        """Insert a text elsewhere; the cursor stays where it is in what was typed."""
        before = self.text[:index].split("\n")
        self.insert(text, (len(before) - 1, len(before[-1])), maintain_selection_offset=True)

    def on_text_area_changed(self) -> None:
        self.post_message(self.Typed())
