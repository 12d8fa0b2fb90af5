"""Decision screen: a question that cannot be answered by accident."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Static

from clew.tui.screens.dialog import Dialog
from clew.tui.state.typing_guard import TypingGuard

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

R = TypeVar("R")

#: Navigation keys, which do not count as typing.
_NAVIGATION_KEYS = frozenset(
    {"up", "down", "pageup", "pagedown", "home", "end", "tab", "shift+tab"}
)


class DecisionScreen(Dialog[R], Generic[R]):
    """
    Screen where a letter chooses, Enter confirms and Escape cancels.

    A letter counts only after a moment without typing, and any other key resets the choice:
    a user who types on without having seen the question answers nothing.
    """

    DEFAULT_CSS = """
    DecisionScreen { align: center middle; }
    DecisionScreen #box { width: 90%; max-width: 100; height: auto; max-height: 90%;
        background: $surface; padding: 0 1; border: round $warning; }
    DecisionScreen #heading { text-style: bold; height: auto; }
    DecisionScreen #choice { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave", priority=True)]

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._guard = TypingGuard(clock)
        self._chosen = ""

    # Content of the question

    @property
    def heading(self) -> str:
        raise NotImplementedError

    def choice_labels(self) -> dict[str, str]:
        """Return the label of each letter's action."""
        raise NotImplementedError

    def describe_choice(self, letter: str) -> str:
        """Return what Enter does after a letter."""
        return self.choice_labels()[letter]

    def blocking_hint(self, letter: str) -> str:
        """Return why a letter cannot be chosen yet; "" if it can."""
        del letter
        return ""

    def build_result(self, letter: str) -> R:
        raise NotImplementedError

    def compose_body(self) -> ComposeResult:
        """Yield the widgets between the heading and the choices."""
        yield from ()

    # Interaction

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(self.heading, id="heading", markup=False)
            yield from self.compose_body()
            yield Static(id="choice", markup=False)

    def on_mount(self) -> None:
        self.update_text()

    def update_text(self, hint: str = "") -> None:
        """Show the choices, and what Enter would do."""
        if not self.query("#choice"):
            return  # closed before it was mounted: its widgets have been removed
        self.query_one("#heading", Static).update(self.heading)
        choices = self.choice_labels()
        letters = [f"{letter.upper()} {told}" for letter, told in choices.items()]
        if self._chosen:
            told = f"Enter: {self.describe_choice(self._chosen)}. Any other key takes that back."
        else:
            told = hint or "Choose by letter, then Enter. Esc leaves it open."
        self.query_one("#choice", Static).update(f"{' · '.join(letters)}\n{told}")

    def on_key(self, event: events.Key) -> None:
        if event.key in _NAVIGATION_KEYS:
            return
        event.prevent_default().stop()
        if event.key == "enter":
            self._confirm_choice()
        else:
            self._choose_letter(event.key.lower())

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        self.reset_choice()

    def _choose_letter(self, letter: str) -> None:
        armed = self._guard.is_armed
        self._guard.note_key()
        self._chosen = ""
        hint = ""
        if letter in self.choice_labels():
            hint = (
                self.blocking_hint(letter)
                if armed
                else "That was quick: press it again in a moment."
            )
            self._chosen = "" if hint else letter
        self.update_text(hint)

    def reset_choice(self) -> None:
        """Reset the choice after a change or another key."""
        self._guard.note_key()
        self._chosen = ""
        if self.is_mounted:
            self.update_text()

    def _confirm_choice(self) -> None:
        if not self._chosen:
            self.reset_choice()
        else:
            self.close(self.build_result(self._chosen))

    def action_leave(self) -> None:
        self.close(None)


class ConfirmationScreen(DecisionScreen[bool]):
    """Yes-or-no question about one action."""

    def __init__(self, clock: Callable[[], float], *, question: str, does: str) -> None:
        super().__init__(clock)
        self._question, self._does = question, does

    @property
    def heading(self) -> str:
        return self._question

    def choice_labels(self) -> dict[str, str]:
        return {"y": self._does, "n": "keep everything as it is"}

    def build_result(self, letter: str) -> bool:
        return letter == "y"
