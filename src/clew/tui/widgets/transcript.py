"""Transcript: scrollable conversation, rendered only where visible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from clew.tui.state.view import Block, BlockKind, ViewState
from clew.tui.text.palette import Palette
from clew.tui.text.renderer import BlockRenderer
from clew.tui.widgets.transcript_layout import TranscriptLayout

if TYPE_CHECKING:
    from textual import events
    from textual.app import App
    from textual.binding import BindingType

#: Width of the margin for signs.
_GUTTER = 2

#: Marks messages of people.
_USER_SIGN = "\N{LEFT HALF BLOCK} "

TranscriptAction = Literal["rewind", "branch", "copy"]


class Transcript(ScrollView, can_focus=True):
    """Widget that shows a view; while focused, one message is selected."""

    DEFAULT_CSS = """
    Transcript { height: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1;
        padding: 0 1; background: $background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "point(-1)", "Up"),
        Binding("down,j", "point(1)", "Down"),
        Binding("home,g", "point(-100000)", "First", show=False),
        Binding("end,G", "point(100000)", "Last", show=False),
        Binding("enter,space", "turn", "Open/close"),
        Binding("a", "turn_all", "All"),
        Binding("r", "deed('rewind')", "Rewind to here"),
        Binding("b", "deed('branch')", "Branch here"),
        Binding("y", "deed('copy')", "Copy"),
        Binding("question_mark", "screen.keys", "Keys"),
    ]

    class OlderRequested(Message):
        """The user scrolls to entries that are not loaded."""

    @dataclass
    class ActionRequested(Message):
        """Action on the selected message."""

        action: TranscriptAction
        block: Block

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self._layout: TranscriptLayout | None = None
        self._view = ViewState()
        self._selected: int | None = None
        self._requested_before = 0
        self._follows_end = True

    def show_view(self, view: ViewState) -> None:
        """Show the current view."""
        if _conversation_id(view) != _conversation_id(self._view):
            self._layout, self._selected, self._requested_before = None, None, 0
            self._follows_end = True
        came_before = view.first < self._view.first and self.scroll_y < self.size.height
        self._view = view
        layout = self._layout or self._create_layout()
        if layout is None:
            return
        offset = layout.pieces[0].block.key if layout.pieces else ""
        height = layout.height
        pointed = self._selected_key
        changed = layout.update_blocks(view.blocks, view.live)
        self._reselect(pointed)
        moved = layout.pieces and layout.pieces[0].block.key != offset and offset
        self._fit_size(changed if not moved else 0)
        if came_before and not self._follows_end:
            self.call_later(self._load_above)
        if self._follows_end:
            self._scroll_to_bottom()
        elif moved and layout.height > height:
            self.scroll_relative(y=layout.height - height, animate=False, immediate=True)

    def _create_layout(self) -> TranscriptLayout | None:
        width = self.scrollable_content_region.width
        if width <= _GUTTER:
            return None
        self._layout = TranscriptLayout(self._make_renderer(width))
        return self._layout

    def _make_renderer(self, width: int) -> BlockRenderer:
        app = cast("App[None]", self.app)
        palette = Palette.from_theme(app.theme_variables, dark=app.current_theme.dark)
        return BlockRenderer(width - _GUTTER, palette)

    def _scroll_to_bottom(self) -> None:
        # Forced: content that has just outgrown the screen has no scroll bar yet.
        self.scroll_end(animate=False, immediate=True, force=True, x_axis=False)

    def _fit_size(self, changed: int) -> None:
        assert self._layout is not None
        size = Size(self.scrollable_content_region.width, self._layout.height)
        if size != self.virtual_size:
            self.virtual_size = size
            if (size.height > self.size.height) != self.show_vertical_scrollbar:
                self.refresh(layout=True)
        # In lines of the whole conversation: the library subtracts the scroll offset.
        first = max(0, changed - 1, round(self.scroll_y))
        count = round(self.scroll_y) + self.size.height - first
        if count > 0:
            self.refresh_lines(first, count)

    def on_resize(self, _event: events.Resize) -> None:
        self.redraw()

    def watch_show_vertical_scrollbar(self) -> None:
        """Redraw: the scroll bar changes the width without a resize event."""
        self.call_after_refresh(self.redraw)

    def redraw(self) -> None:
        """Redraw everything after a change of width or colours."""
        width = self.scrollable_content_region.width
        if width <= _GUTTER:
            return
        if self._layout is None:
            self.show_view(self._view)
            return
        fits = self._layout.painter.width == max(width - _GUTTER, 10)
        painter = self._make_renderer(width)
        if not fits or painter.palette != self._layout.painter.palette:
            pointed = self._selected_key
            self._layout.rerender(painter)
            self._reselect(pointed)
        self._fit_size(0)
        if self._follows_end:
            self._scroll_to_bottom()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        layout = self._layout
        if layout is None:
            return
        self._follows_end = new_value >= self.max_scroll_y - 1
        if new_value < old_value and new_value < self.size.height:
            self.call_later(self._load_above)

    def _load_above(self) -> None:
        """Render or load earlier blocks."""
        layout = self._layout
        if layout is None:
            return
        if not layout.is_complete:
            before = self._piece_count
            came = layout.render_earlier()
            if self._selected is not None:
                self._selected += self._piece_count - before
            self._fit_size(0)
            self.scroll_relative(y=came, animate=False, immediate=True)
        elif self._view.first > self._view.start and self._view.first != self._requested_before:
            self._requested_before = self._view.first
            self.post_message(self.OlderRequested())

    @property
    def _piece_count(self) -> int:
        return 0 if self._layout is None else len(self._layout.pieces)

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        line = round(self.scroll_y) + y
        index = None if self._layout is None else self._layout.piece_at(line)
        if self._layout is None or index is None:
            return Strip.blank(width, base)
        piece = self._layout.pieces[index]
        inside = line - piece.top - piece.gap
        if inside < 0:
            return Strip.blank(width, base)
        segments = [self._sign_segment(index, piece.block), *piece.lines[inside]]
        return Strip(segments).apply_style(base).crop_extend(0, width, base)

    def _sign_segment(self, index: int, block: Block) -> Segment:
        assert self._layout is not None
        accent = Style.parse(f"bold {self._layout.painter.palette.accent}")
        if index == self._selected and self.has_focus:
            return Segment("┃ ", accent)
        if block.kind is BlockKind.USER:
            return Segment(_USER_SIGN, accent)
        return Segment("  ")

    @property
    def _selected_key(self) -> str:
        """Return the key of the selected block, "" for none."""
        if self._layout is None or self._selected is None:
            return ""
        return self._layout.pieces[self._selected].block.key

    def _reselect(self, key: str) -> None:
        """Select the same block at its new position, or the nearest one."""
        if self._layout is not None and self._selected is not None:
            last = self._piece_count - 1
            found = self._layout.find_piece(key)
            self._selected = found if found is not None else min(self._selected, last)
            if last < 0:
                self._selected = None

    def on_focus(self) -> None:
        if self._piece_count and self._selected is None:
            self._select_piece(self._piece_count - 1)

    def on_blur(self) -> None:
        self._selected = None
        self.refresh()

    def action_point(self, step: int) -> None:
        if not self._piece_count:
            return
        at = self._piece_count - 1 if self._selected is None else self._selected + step
        self._select_piece(min(max(at, 0), self._piece_count - 1))

    def select_block(self, key: str) -> None:
        """Select a block and scroll it to the top."""
        layout = self._layout
        if layout is None:
            return
        while (index := layout.find_piece(key)) is None and not layout.is_complete:
            layout.render_earlier()
        self._fit_size(0)
        if index is None:
            return
        self._selected = index
        self.focus()
        self._select_piece(index)
        self.scroll_to(y=layout.pieces[index].top, animate=False, immediate=True)

    def _select_piece(self, index: int) -> None:
        assert self._layout is not None
        self._selected = index
        if index == 0:
            self.call_later(self._load_above)
        piece = self._layout.pieces[index]
        top, height = round(self.scroll_y), self.size.height
        if piece.top < top or piece.end - piece.top > height:
            self.scroll_to(y=piece.top, animate=False, immediate=True)
        elif piece.end > top + height:
            self.scroll_to(y=piece.end - height, animate=False, immediate=True)
        self.refresh()

    def action_turn(self) -> None:
        if self._layout is not None and self._selected is not None:
            self._layout.toggle_block(self._selected)
            self._fit_size(0)

    def action_turn_all(self) -> None:
        if self._layout is not None:
            self._layout.toggle_all()
            self._fit_size(0)

    def action_deed(self, deed: TranscriptAction) -> None:
        if self._layout is not None and self._selected is not None:
            self.post_message(self.ActionRequested(deed, self._layout.pieces[self._selected].block))


def _conversation_id(view: ViewState) -> str | None:
    return view.conversation.id if view.conversation else None
