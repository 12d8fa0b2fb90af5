"""The conversation: scrolled, pointed at, drawn only where it is looked at."""

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

from clew.tui.state.view import Block, Kind, View
from clew.tui.text.painter import Painter
from clew.tui.text.palette import Palette
from clew.tui.widgets.pieces import Layout

if TYPE_CHECKING:
    from textual import events
    from textual.app import App
    from textual.binding import BindingType

#: Columns for signs at the left.
_GUTTER = 2

#: Marks what a person said.
_PERSON = "\N{LEFT HALF BLOCK} "

Deed = Literal["rewind", "branch", "copy"]


class Transcript(ScrollView, can_focus=True):
    """Shows a view; while it has the focus, one message is pointed at."""

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

    class WantsOlder(Message):
        """Somebody scrolls to where nothing is loaded yet."""

    @dataclass
    class Done(Message):
        """Something is to be done with the message that is pointed at."""

        deed: Deed
        block: Block

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self._layout: Layout | None = None
        self._view = View()
        self._pointed: int | None = None
        self._asked_before = 0
        self._follows = True

    def show(self, view: View) -> None:
        """Show a conversation as it is now."""
        if _id(view) != _id(self._view):
            self._layout, self._pointed, self._asked_before = None, None, 0
            self._follows = True
        came_before = view.first < self._view.first and self.scroll_y < self.size.height
        self._view = view
        layout = self._layout or self._made()
        if layout is None:
            return
        offset = layout.pieces[0].block.key if layout.pieces else ""
        height = layout.height
        pointed = self._pointed_key
        changed = layout.show(view.blocks, view.live)
        self._point_again(pointed)
        moved = layout.pieces and layout.pieces[0].block.key != offset and offset
        self._fit(changed if not moved else 0)
        if came_before and not self._follows:
            self.call_later(self._reach_back)
        if self._follows:
            self._to_end()
        elif moved and layout.height > height:
            self.scroll_relative(y=layout.height - height, animate=False, immediate=True)

    def _made(self) -> Layout | None:
        width = self.scrollable_content_region.width
        if width <= _GUTTER:
            return None
        self._layout = Layout(self._painter(width))
        return self._layout

    def _painter(self, width: int) -> Painter:
        app = cast("App[None]", self.app)
        palette = Palette.of(app.theme_variables, dark=app.current_theme.dark)
        return Painter(width - _GUTTER, palette)

    def _to_end(self) -> None:
        # Forced: what has just grown out of the screen has no bar yet, and would not be scrolled.
        self.scroll_end(animate=False, immediate=True, force=True, x_axis=False)

    def _fit(self, changed: int) -> None:
        assert self._layout is not None
        size = Size(self.scrollable_content_region.width, self._layout.height)
        if size != self.virtual_size:
            self.virtual_size = size
            if (size.height > self.size.height) != self.show_vertical_scrollbar:
                self.refresh(layout=True)
        # Lines of the whole conversation: the library takes off what is scrolled away.
        first = max(0, changed - 1, round(self.scroll_y))
        count = round(self.scroll_y) + self.size.height - first
        if count > 0:
            self.refresh_lines(first, count)

    def on_resize(self, _event: events.Resize) -> None:
        self.redraw()

    def watch_show_vertical_scrollbar(self) -> None:
        """The bar takes a column, or gives one back, which no resize tells of."""
        self.call_after_refresh(self.redraw)

    def redraw(self) -> None:
        """Draw everything anew: the width or the colours have changed."""
        width = self.scrollable_content_region.width
        if width <= _GUTTER:
            return
        if self._layout is None:
            self.show(self._view)
            return
        fits = self._layout.painter.width == max(width - _GUTTER, 10)
        painter = self._painter(width)
        if not fits or painter.palette != self._layout.painter.palette:
            pointed = self._pointed_key
            self._layout.redrawn(painter)
            self._point_again(pointed)
        self._fit(0)
        if self._follows:
            self._to_end()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        layout = self._layout
        if layout is None:
            return
        self._follows = new_value >= self.max_scroll_y - 1
        if new_value < old_value and new_value < self.size.height:
            self.call_later(self._reach_back)

    def _reach_back(self) -> None:
        """Have more drawn above, or loaded."""
        layout = self._layout
        if layout is None:
            return
        if not layout.is_complete:
            before = self._count
            came = layout.more()
            if self._pointed is not None:
                self._pointed += self._count - before
            self._fit(0)
            self.scroll_relative(y=came, animate=False, immediate=True)
        elif self._view.first > 1 and self._view.first != self._asked_before:
            self._asked_before = self._view.first
            self.post_message(self.WantsOlder())

    @property
    def _count(self) -> int:
        return 0 if self._layout is None else len(self._layout.pieces)

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        line = round(self.scroll_y) + y
        index = None if self._layout is None else self._layout.at(line)
        if self._layout is None or index is None:
            return Strip.blank(width, base)
        piece = self._layout.pieces[index]
        inside = line - piece.top - piece.gap
        if inside < 0:
            return Strip.blank(width, base)
        segments = [self._sign(index, piece.block), *piece.lines[inside]]
        return Strip(segments).apply_style(base).crop_extend(0, width, base)

    def _sign(self, index: int, block: Block) -> Segment:
        assert self._layout is not None
        accent = Style.parse(f"bold {self._layout.painter.palette.accent}")
        if index == self._pointed and self.has_focus:
            return Segment("┃ ", accent)
        if block.kind is Kind.USER:
            return Segment(_PERSON, accent)
        return Segment("  ")

    @property
    def _pointed_key(self) -> str:
        """The block that is pointed at, "" for none."""
        if self._layout is None or self._pointed is None:
            return ""
        return self._layout.pieces[self._pointed].block.key

    def _point_again(self, key: str) -> None:
        """Point at the same block, wherever it is now; what was being made may be gone."""
        if self._layout is not None and self._pointed is not None:
            last = self._count - 1
            found = self._layout.index(key)
            self._pointed = found if found is not None else min(self._pointed, last)
            if last < 0:
                self._pointed = None

    def on_focus(self) -> None:
        if self._count and self._pointed is None:
            self._point_at(self._count - 1)

    def on_blur(self) -> None:
        self._pointed = None
        self.refresh()

    def action_point(self, step: int) -> None:
        if not self._count:
            return
        at = self._count - 1 if self._pointed is None else self._pointed + step
        self._point_at(min(max(at, 0), self._count - 1))

    def point_to(self, key: str) -> None:
        """Point at a block of what is shown, at the top."""
        layout = self._layout
        if layout is None:
            return
        while (index := layout.index(key)) is None and not layout.is_complete:
            layout.more()
        self._fit(0)
        if index is None:
            return
        self._pointed = index
        self.focus()
        self._point_at(index)
        self.scroll_to(y=layout.pieces[index].top, animate=False, immediate=True)

    def _point_at(self, index: int) -> None:
        assert self._layout is not None
        self._pointed = index
        if index == 0:
            self.call_later(self._reach_back)
        piece = self._layout.pieces[index]
        top, height = round(self.scroll_y), self.size.height
        if piece.top < top or piece.end - piece.top > height:
            self.scroll_to(y=piece.top, animate=False, immediate=True)
        elif piece.end > top + height:
            self.scroll_to(y=piece.end - height, animate=False, immediate=True)
        self.refresh()

    def action_turn(self) -> None:
        if self._layout is not None and self._pointed is not None:
            self._layout.turn(self._pointed)
            self._fit(0)

    def action_turn_all(self) -> None:
        if self._layout is not None:
            self._layout.turn_all()
            self._fit(0)

    def action_deed(self, deed: Deed) -> None:
        if self._layout is not None and self._pointed is not None:
            self.post_message(self.Done(deed, self._layout.pieces[self._pointed].block))


def _id(view: View) -> str | None:
    return view.conversation.id if view.conversation else None
