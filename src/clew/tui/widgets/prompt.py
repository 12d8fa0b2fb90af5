"""Prompt: multi-line input with history and verbatim pastes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import Binding
from textual.message import Message

from clew.tui.state.paste_folding import PasteFolds
from clew.tui.text.pasted import decode_paste
from clew.tui.widgets.ordered_keys import MultiLineInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual import events
    from textual.binding import BindingType

    from clew.tui.state.input_history import InputHistory
    from clew.tui.widgets.completion_menu import CompletionMenu

#: Keys of the completion menu while it is open.
_MENU_KEYS: Final = frozenset({"up", "down", "tab", "escape", "enter"})

PLACEHOLDER: Final = "Type a message; / for commands, @ for files, ? for keys"
SHORT_PLACEHOLDER: Final = "Type a message; ? for keys"


class Prompt(MultiLineInput):
    """Input where Enter sends and Ctrl-J starts a line; up and down navigate the history."""

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
    class MessageSubmitted(Message):
        """Message to submit."""

        text: str
        #: Send into the running turn instead of queueing it.
        steer: bool

    class QuitRequested(Message):
        """Ctrl-D was pressed in an empty prompt."""

    @dataclass
    class InterruptRequested(Message):
        """Ctrl-C was pressed; the text is already cleared."""

        has_cleared: bool

    class TextEdited(Message):
        """The text or the cursor position changed."""

    def __init__(
        self,
        history: InputHistory,
        proposals: CompletionMenu,
        is_held: Callable[[], bool] = lambda: False,
    ) -> None:
        """``is_held`` tells whether Ctrl-C is meant for a screen that is about to open."""
        super().__init__(
            id="prompt",
            soft_wrap=True,
            show_line_numbers=False,
            highlight_cursor_line=False,
            tab_behavior="focus",
            placeholder=PLACEHOLDER,
        )
        self.input_history, self._is_held = history, is_held
        #: While the menu is open, its keys take precedence over the history.
        self._completions = proposals
        #: Rejected texts, restored at the start of the text.
        self._restored_text = ""
        self._folds = PasteFolds()

    @property
    def full_text(self) -> str:
        """Return the text with folded pastes expanded."""
        return self._folds.expand_labels(self.text)

    def clear_text(self) -> None:
        """Clear the text and add it to the history."""
        self.input_history = self.input_history.append_text(self.full_text)
        self.text, self._restored_text, self._folds = "", "", PasteFolds()
        self._completions.show_completions(None)

    async def _on_paste(self, event: events.Paste) -> None:
        self._folds, event.text = self._folds.fold_paste(decode_paste(event.text))

    def _copy_or_clear(self) -> None:
        """Copy the selection, else clear the text, before the next key is read."""
        if self.selected_text:
            self.action_copy()
            return
        has_cleared = bool(self.text)
        if has_cleared:
            self.clear_text()
        self.post_message(self.InterruptRequested(has_cleared))

    def _delete_label(self) -> bool:
        """Delete the paste label before the cursor; return whether there was one."""
        row, column = self.cursor_location
        label = self._folds.label_before(self.document.get_line(row)[:column])
        if not label or self.selected_text:
            return False
        self.delete((row, column - len(label)), (row, column))
        return True

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "ctrl+d" and not self.text:
            event.prevent_default().stop()
            self.post_message(self.QuitRequested())
            return
        if event.key == "ctrl+c":
            event.prevent_default().stop()
            if not self._is_held():
                self._copy_or_clear()
            return
        if event.key == "backspace" and self._delete_label():
            event.prevent_default().stop()
            return
        if self._completions.is_open and event.key in _MENU_KEYS:
            event.prevent_default().stop()
            self._handle_menu_key(event.key)
            return
        if event.key == "enter":
            event.prevent_default().stop()
            self.action_send("")
            return
        if event.key in ("up", "down") and self._is_at_edge(event.key):
            event.prevent_default().stop()
            self._recall_text(event.key)
            return
        await super()._on_key(event)

    def _handle_menu_key(self, key: str) -> None:
        """Handle a key of the menu at once: the next key may already be pressed."""
        proposals = self._completions
        if key in ("up", "down"):
            proposals.move_highlight(1 if key == "down" else -1)
            return
        taken = proposals.apply_completion(self.text) if key != "escape" else None
        proposals.show_completions(None)
        if taken is not None:
            self.replace_text(taken)
        # Typed faster than the completions arrived: send it as it is.
        if key == "enter" and (taken is None or (taken[:1] == "/" and taken[-1:] != " ")):
            self.action_send("")

    def _is_at_edge(self, key: str) -> bool:
        row, _ = self.cursor_location
        if key == "up":
            return row == 0 and self.input_history.at > 0
        return row == self.document.line_count - 1 and self.input_history.at < len(
            self.input_history.texts
        )

    def _recall_text(self, key: str) -> None:
        move = self.input_history.previous_text if key == "up" else self.input_history.next_text
        self.input_history, text = move(self.text)
        self.replace_text(text)

    def fit_width(self, width: int) -> None:
        """Choose the placeholder and the key hints by the width."""
        is_wide = width > len(PLACEHOLDER) + 6
        self.placeholder = PLACEHOLDER if is_wide else SHORT_PLACEHOLDER
        self.border_subtitle = "Enter sends · ^J new line" if is_wide else ""

    def replace_text(self, text: str) -> None:
        """Replace the text and move the cursor to its end."""
        self.text = text
        self.move_cursor(self.document.end)

    def action_newline(self) -> None:
        self.insert("\n")

    def action_send(self, how: str) -> None:
        text = self.full_text
        if self.text.endswith("\\"):  # for terminals that report all variants as Enter
            self.replace_text(self.text[:-1] + "\n")
        elif text.strip():
            # Cleared at once: the next key can neither resend it nor append to it.
            self.clear_text()
            self.post_message(self.MessageSubmitted(text, steer=how == "steer"))

    def restore_text(self, text: str) -> None:
        """Insert a rejected text before what was typed since."""
        if not self.text:
            self.replace_text(text)
            self._restored_text = text
        elif self._restored_text and self.text.startswith(self._restored_text):
            at = len(self._restored_text)
            self._restored_text += f"\n{text}"
            apart = "" if self.text[at : at + 1] in ("", "\n") else "\n"
            self._insert_text(at, f"\n{text}{apart}")
        else:
            self._restored_text = text
            self._insert_text(0, f"{text}\n")

    def _insert_text(self, index: int, text: str) -> None:
        """Insert a text at an index; the cursor stays in place within the typed text."""
        before = self.text[:index].split("\n")
        self.insert(text, (len(before) - 1, len(before[-1])), maintain_selection_offset=True)

    def on_text_area_changed(self) -> None:
        self.post_message(self.TextEdited())
