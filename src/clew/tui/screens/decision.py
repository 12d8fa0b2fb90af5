"""A question whose answer cannot be given by accident."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Static

from clew.tui.screens.dialog import Dialog
from clew.tui.state.guard import TypingGuard

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

R = TypeVar("R")

#: Keys that move through what is shown, and so do not count as typing.
_MOVES = frozenset({"up", "down", "pageup", "pagedown", "home", "end", "tab", "shift+tab"})


class DecisionScreen(Dialog[R], Generic[R]):
    """
    A letter chooses, Enter carries it out, Escape leaves everything as it is.

    A letter counts only after a moment without typing, and any other key takes the choice back: who
    types on, not having seen the question, answers nothing.
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

    # What a question says

    @property
    def heading(self) -> str:
        raise NotImplementedError

    def choices(self) -> dict[str, str]:
        """What each letter would do, in words."""
        raise NotImplementedError

    def obstacle(self, letter: str) -> str:
        """Why a letter cannot be chosen yet; "" if it can."""
        del letter
        return ""

    def result(self, letter: str) -> R:
        raise NotImplementedError

    def body(self) -> ComposeResult:
        """What stands between the heading and the choices."""
        yield from ()

    # How it is asked

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(self.heading, id="heading", markup=False)
            yield from self.body()
            yield Static(id="choice", markup=False)

    def on_mount(self) -> None:
        self.say()

    def say(self, hint: str = "") -> None:
        """Show the choices, and what Enter would do."""
        self.query_one("#heading", Static).update(self.heading)
        choices = self.choices()
        letters = [f"{letter.upper()} {told}" for letter, told in choices.items()]
        if self._chosen:
            told = f"Enter: {choices[self._chosen]}. Any other key takes that back."
        else:
            told = hint or "Choose by letter, then Enter. Esc leaves it open."
        self.query_one("#choice", Static).update(f"{' · '.join(letters)}\n{told}")

    def on_key(self, event: events.Key) -> None:
        if event.key in _MOVES:
            return
        event.prevent_default().stop()
        if event.key == "enter":
            self._carry_out()
        else:
            self._choose(event.key.lower())

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        self.unchoose()

    def _choose(self, letter: str) -> None:
        armed = self._guard.is_armed
        self._guard.typed()
        self._chosen = ""
        hint = ""
        if letter in self.choices():
            hint = self.obstacle(letter) if armed else "That was quick: press it again in a moment."
            self._chosen = "" if hint else letter
        self.say(hint)

    def unchoose(self) -> None:
        """Take a choice back: something has changed, or something else was typed."""
        self._guard.typed()
        self._chosen = ""
        if self.is_mounted:
            self.say()

    def _carry_out(self) -> None:
        if not self._chosen:
            self.unchoose()
        else:
            self.close(self.result(self._chosen))

    def action_leave(self) -> None:
        self.close(None)


class Confirmation(DecisionScreen[bool]):
    """Whether one thing may be done."""

    def __init__(self, clock: Callable[[], float], *, question: str, does: str) -> None:
        super().__init__(clock)
        self._question, self._does = question, does

    @property
    def heading(self) -> str:
        return self._question

    def choices(self) -> dict[str, str]:
        return {"y": self._does, "n": "keep everything as it is"}

    def result(self, letter: str) -> bool:
        return letter == "y"
