"""Scrollable tool calls with full arguments; tracks which were seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from clew.record import Record
from clew.tui.text.exact import CharacterRun, argument_fields, wrap_exact
from clew.tui.text.sanitize import strip_controls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

    from clew.wire.models import ApprovalShape

_BOLD: Final = Style(bold=True)
_ESCAPED: Final = Style(reverse=True)
#: Indentation of a value.
_INDENT: Final = "  "


class _RowRange(Record):
    """Rows of one call."""

    first: int
    last: int


class CallArguments(ScrollView, can_focus=False):
    """View of tool calls one below the other, to the letter."""

    DEFAULT_CSS = """
    CallArguments { height: 1fr; overflow-x: hidden; overflow-y: auto; }
    """

    def __init__(self) -> None:
        super().__init__(id="arguments")
        self._calls: tuple[ApprovalShape, ...] = ()
        self._rows: list[list[Segment]] = []
        self._places: dict[str, _RowRange] = {}
        self._current = ""
        #: Calls whose first (``False``) and last (``True``) rows were on the screen.
        self._seen: set[tuple[str, bool]] = set()

    def show_calls(self, calls: Sequence[ApprovalShape], *, current: str) -> None:
        """Show calls; those that were seen keep that mark."""
        self._calls, self._current = tuple(calls), current
        self._build_rows()

    def was_seen(self, call: str) -> bool:
        """Return whether both the start and the end of a call were on the screen."""
        return {(call, False), (call, True)} <= self._seen

    def scroll_to_call(self, call: str) -> None:
        """Scroll to the start of a call."""
        if (place := self._places.get(call)) is not None:
            self.scroll_to(y=place.first, animate=False)

    def on_resize(self, _event: events.Resize) -> None:
        self._build_rows()

    def watch_show_vertical_scrollbar(self) -> None:
        self.call_after_refresh(self._build_rows)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._mark_seen()

    def _build_rows(self) -> None:
        width = self.scrollable_content_region.width
        if width <= len(_INDENT) + 1:
            return
        self._rows, self._places = [], {}
        for number, call in enumerate(self._calls, 1):
            first = len(self._rows)
            self._rows += _call_rows(call, number, width, is_current=call.id == self._current)
            self._places[call.id] = _RowRange(first=first, last=len(self._rows) - 1)
            self._rows.append([])
        self.virtual_size = Size(width, len(self._rows))
        self.refresh()
        self.call_after_refresh(self._mark_seen)

    def _mark_seen(self) -> None:
        """Mark the rows that are on the screen now as seen."""
        top = round(self.scroll_y)
        shown = range(top, top + self.size.height)
        for call, place in self._places.items():
            ends = ((False, place.first), (True, place.last))
            self._seen |= {(call, is_end) for is_end, row in ends if row in shown}

    def render_line(self, y: int) -> Strip:
        at = round(self.scroll_y) + y
        segments = self._rows[at] if at < len(self._rows) else []
        return (
            Strip(segments)
            .apply_style(self.rich_style)
            .crop_extend(0, self.size.width, self.rich_style)
        )


def _call_rows(
    call: ApprovalShape, number: int, width: int, *, is_current: bool
) -> list[list[Segment]]:
    sign = "▸" if is_current else " "
    found = [[Segment(f"{sign} {number}. {strip_controls(call.tool)}"[:width], _BOLD)]]
    for name, value in argument_fields(call.args):
        if name:
            found += _indent_rows(f"{name}:", width, indent=_INDENT)
        found += _indent_rows(value, width, indent=_INDENT * 2 if name else _INDENT)
    for line in (call.preview or "").splitlines():
        found += _indent_rows(line, width, indent=_INDENT)
    if call.why is not None:
        found += _indent_rows(f"(asked because {call.why})", width, indent=_INDENT)
    if call.offer is not None:
        found += _indent_rows(f"(H and W allow {call.offer})", width, indent=_INDENT)
    return found


def _indent_rows(text: str, width: int, *, indent: str) -> list[list[Segment]]:
    return [
        [Segment(indent), *(_make_segment(run) for run in row)]
        for row in wrap_exact(text, width - len(indent))
    ]


def _make_segment(run: CharacterRun) -> Segment:
    return Segment(run.text, _ESCAPED if run.is_escaped else None)
