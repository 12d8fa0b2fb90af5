"""Approval screen: shows waiting tool calls in full, to allow or deny them deliberately."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Literal

from textual.binding import Binding

from clew.record import Record
from clew.tui.screens.decision import DecisionScreen
from clew.tui.text.sanitize import strip_controls
from clew.tui.widgets.arguments import CallArguments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from clew.wire.models import ApprovalShape


#: Letters that deny, and that allow what was offered for longer.
_DENIES: Final = ("n", "b")
_KEEPS: Final[dict[str, Literal["hour", "always"]]] = {"h": "hour", "w": "always"}


class ApprovalAnswer(Record):
    """Answer to calls that were shown in full."""

    approvals: tuple[str, ...]
    approve: bool
    #: Allow what was offered for longer.
    keep: Literal["hour", "always"] | None = None
    #: The person wants to say why.
    because: bool = False


class ApprovalScreen(DecisionScreen[ApprovalAnswer]):
    """Screen where Y allows the marked call, H and W for longer, N and B deny it, A allows all."""

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

    def compose_body(self) -> ComposeResult:
        yield CallArguments()

    def on_mount(self) -> None:
        self._update_arguments()

    def show_calls(self, calls: Sequence[ApprovalShape]) -> None:
        """Replace the list of calls; a choice made before is reset."""
        if [one.id for one in calls] == [one.id for one in self._calls]:
            return
        if not calls:
            # The calls stay until the screen has closed: it may still be mounted, or get a key.
            self.action_leave()
            return
        current = self.current_call.id
        self._calls = tuple(calls)
        self._at = next((n for n, one in enumerate(self._calls) if one.id == current), 0)
        if self.is_mounted:
            self._update_arguments()
            self.reset_choice()

    @property
    def current_call(self) -> ApprovalShape:
        """Return the marked call."""
        return self._calls[self._at]

    @property
    def _arguments(self) -> CallArguments:
        return self.query_one(CallArguments)

    def _update_arguments(self) -> None:
        # None are left if the screen was closed before it was mounted.
        for arguments in self.query(CallArguments):
            arguments.show_calls(self._calls, current=self.current_call.id)

    def choice_labels(self) -> dict[str, str]:
        name = strip_controls(self.current_call.tool)
        which = name if len(self._calls) == 1 else f"call {self._at + 1}, {name}"
        found = {"y": f"allow {which}", "n": f"deny {which}"}
        if len(self._calls) > 1:
            names = ", ".join(strip_controls(one.tool) for one in self._calls)
            found["a"] = f"allow all {len(self._calls)}: {names}"
        if self.current_call.offer is not None:
            found |= {"h": "for an hour", "w": "always"}
        # Short: it must not wrap on a small screen.
        return {**found, "b": "why"}

    def describe_choice(self, letter: str) -> str:
        return "deny it and say why" if letter == "b" else super().describe_choice(letter)

    def blocking_hint(self, letter: str) -> str:
        wanted = () if letter in _DENIES else self._target_ids(letter)
        if all(self._arguments.was_seen(one) for one in wanted):
            return ""
        return "There is more than was shown: Down, PgDn and End scroll to the rest."

    def _target_ids(self, letter: str) -> tuple[str, ...]:
        return tuple(one.id for one in self._calls) if letter == "a" else (self.current_call.id,)

    def build_result(self, letter: str) -> ApprovalAnswer:
        return ApprovalAnswer(
            approvals=self._target_ids(letter),
            approve=letter not in _DENIES,
            keep=_KEEPS.get(letter),
            because=letter == "b",
        )

    def action_scroll(self, step: int) -> None:
        self._arguments.scroll_relative(y=step, animate=False)

    def action_page(self, step: int) -> None:
        height = max(1, self._arguments.size.height - 1)
        self._arguments.scroll_relative(y=step * height, animate=False)

    def action_mark(self, step: int) -> None:
        self._at = (self._at + step) % len(self._calls)
        self._update_arguments()
        self._arguments.scroll_to_call(self.current_call.id)
        self.reset_choice()
