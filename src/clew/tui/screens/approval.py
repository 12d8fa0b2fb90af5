"""Tool calls that wait for approval: shown whole, and allowed or denied on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding

from clew.tui.screens.decision import DecisionScreen
from clew.tui.text.clean import clean
from clew.tui.widgets.arguments import CallArguments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from clew.wire.records import ApprovalShape


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A person's answer to calls that they have seen."""

    approvals: tuple[str, ...]
    approve: bool


class ApprovalScreen(DecisionScreen[Answer]):
    """Y allows the marked call, N denies it, A allows all that are listed."""

    DEFAULT_CSS = """
    ApprovalScreen #box { height: 90%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll(-1)", "Up", priority=True),
        Binding("down", "scroll(1)", "Down", priority=True),
        Binding("pageup", "page(-1)", "Page up", priority=True),
        Binding("pagedown", "page(1)", "Page down", priority=True),
        Binding("home", "page(-10000)", "Beginning", priority=True, show=False),
        Binding("end", "page(10000)", "End", priority=True, show=False),
        Binding("tab", "mark(1)", "Next call", priority=True),
        Binding("shift+tab", "mark(-1)", "Call before", priority=True),
    ]

    def __init__(self, clock: Callable[[], float], calls: Sequence[ApprovalShape]) -> None:
        super().__init__(clock)
        self._calls = tuple(calls)
        self._at = 0

    @property
    def heading(self) -> str:
        count = len(self._calls)
        return "Allow this tool call?" if count == 1 else f"Allow these {count} tool calls?"

    def body(self) -> ComposeResult:
        yield CallArguments()

    def on_mount(self) -> None:
        self._show_calls()

    def show(self, calls: Sequence[ApprovalShape]) -> None:
        """Other calls wait now: a choice was for those before."""
        if [one.id for one in calls] == [one.id for one in self._calls]:
            return
        current = self._current.id
        self._calls = tuple(calls)
        self._at = next((n for n, one in enumerate(self._calls) if one.id == current), 0)
        if not self._calls:
            self.action_leave()
        elif self.is_mounted:
            self._show_calls()
            self.unchoose()

    @property
    def _current(self) -> ApprovalShape:
        return self._calls[self._at]

    @property
    def _arguments(self) -> CallArguments:
        return self.query_one(CallArguments)

    def _show_calls(self) -> None:
        self._arguments.show(self._calls, current=self._current.id)

    def choices(self) -> dict[str, str]:
        name = clean(self._current.tool)
        which = name if len(self._calls) == 1 else f"call {self._at + 1}, {name}"
        found = {"y": f"allow {which}", "n": f"deny {which}"}
        if len(self._calls) > 1:
            names = ", ".join(clean(one.tool) for one in self._calls)
            found["a"] = f"allow all {len(self._calls)}: {names}"
        return found

    def obstacle(self, letter: str) -> str:
        wanted = () if letter == "n" else self._meant(letter)
        if all(self._arguments.was_seen(one) for one in wanted):
            return ""
        return "There is more than was shown: Down, PgDn and End scroll to the rest."

    def _meant(self, letter: str) -> tuple[str, ...]:
        return tuple(one.id for one in self._calls) if letter == "a" else (self._current.id,)

    def result(self, letter: str) -> Answer:
        return Answer(approvals=self._meant(letter), approve=letter != "n")

    def action_scroll(self, step: int) -> None:
        self._arguments.scroll_relative(y=step, animate=False)

    def action_page(self, step: int) -> None:
        height = max(1, self._arguments.size.height - 1)
        self._arguments.scroll_relative(y=step * height, animate=False)

    def action_mark(self, step: int) -> None:
        self._at = (self._at + step) % len(self._calls)
        self._show_calls()
        self._arguments.go_to(self._current.id)
        self.unchoose()
