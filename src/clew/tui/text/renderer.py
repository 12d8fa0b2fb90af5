"""Rendering of blocks to terminal lines. Each Markdown block is rendered once per width."""

from __future__ import annotations

import io
from collections import OrderedDict
from datetime import datetime
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from rich.theme import Theme

from clew.core.text import truncate_text
from clew.tui.state.labels import format_arguments, format_duration, tool_details
from clew.tui.state.view import Block, BlockKind, ToolCallView, ToolProgress
from clew.tui.text.diffs import extract_diff, is_diff
from clew.tui.text.markdown_blocks import split_blocks
from clew.tui.text.sanitize import strip_controls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from clew.tui.text.palette import Palette

SegmentLine = list[Segment]
#: Rendered Markdown blocks in the cache.
_CACHE_SIZE: Final = 2000
#: Lines of a tool's result, or of thinking, that are shown when it is open.
_MAX_OPEN_LINES: Final = 400
#: Lines of a diff that are shown before it is opened.
_MAX_PREVIEW_LINES: Final = 12
#: Width from which a message shows the name and the date.
_WIDE_COLUMNS: Final = 60
#: Diff header lines that are hidden.
_DIFF_HEADERS: Final = ("diff --git", "index ")
_SIGNS: Final = {
    ToolProgress.ASKED: "○",
    ToolProgress.RUNNING: "◐",
    ToolProgress.DONE: "✓",
    ToolProgress.FAILED: "✗",
    ToolProgress.DENIED: "⊘",
}


class BlockRenderer:
    """Renderer for one width and one palette."""

    def __init__(self, width: int, palette: Palette) -> None:
        self.width, self.palette = max(width, 10), palette
        self._console = Console(
            file=io.StringIO(),
            width=self.width,
            force_terminal=True,
            color_system="truecolor",
            legacy_windows=False,
            theme=Theme(palette.markdown_styles()),
            _environ={},
        )
        self._cache: OrderedDict[str, list[SegmentLine]] = OrderedDict()

    def render_block(self, block: Block, *, folded: bool) -> list[SegmentLine]:
        """Return the lines of a block, without space around it."""
        if block.taken:
            return self._render_rewound(block, folded=folded)
        return self._render_kind(block, folded=folded)

    def _render_rewound(self, block: Block, *, folded: bool) -> list[SegmentLine]:
        """Return a line that marks a rewound block, and its content if it is open."""
        sign = "▸" if folded else "▾"
        said = block.tool.name if block.tool else block.text
        what = f" {sign} {' '.join(strip_controls(said).split())}"
        quiet = Text.assemble(
            ("taken back", f"italic {self.palette.quiet}"),
            (truncate_text(what, 300), f"strike {self.palette.quiet}"),
            no_wrap=True,
            overflow="ellipsis",
        )
        head = self._render_lines(quiet)
        if folded:
            return head
        return [
            *head,
            *self._render_content(tool_details(block.tool) if block.tool else block.text),
        ]

    def _render_kind(self, block: Block, *, folded: bool) -> list[SegmentLine]:
        match block.kind:
            case BlockKind.USER:
                return self._render_message(block)
            case BlockKind.ANSWER:
                return [*self.render_markdown(block.text), *self._render_totals(block)]
            case BlockKind.THINKING:
                return self._render_foldable("thinking", block.text, folded=folded)
            case BlockKind.TOOL if block.tool is not None:
                return self._render_tool(block.tool, folded=folded)
            case _:
                return self._render_plain(f"· {block.text}", f"italic {self.palette.quiet}")

    def _render_message(self, block: Block) -> list[SegmentLine]:
        """Return a person's message, with name and time at the right of its first line."""
        stamp = self._format_time(block.at)
        if self.width >= _WIDE_COLUMNS and stamp:
            stamp = f"You {stamp}"
        room = len(stamp) + 2 if stamp else 0
        lines = self._render_lines(Text(strip_controls(block.text), style="bold"), less=room)
        if not stamp or not lines:
            return lines
        gap = self.width - len(stamp) - sum(segment.cell_length for segment in lines[0])
        quiet = Style.parse(self.palette.quiet)
        return [[*lines[0], Segment(" " * gap), Segment(stamp, quiet)], *lines[1:]]

    def _render_totals(self, block: Block) -> list[SegmentLine]:
        """Return the line below an answer: model, duration, tokens, time."""
        if block.totals is None:
            return []
        model, tokens = block.totals.model, block.totals.tokens
        facts = [
            "Clew" if not model else f"Clew ({model})",
            "" if block.totals.seconds is None else format_duration(block.totals.seconds),
            f"{tokens:,} token{'s' if tokens != 1 else ''}" if tokens else "",
            self._format_time(block.at),
        ]
        told = " · ".join(filter(None, facts))
        line = Text(
            strip_controls(told), style=self.palette.quiet, no_wrap=True, overflow="ellipsis"
        )
        return self._render_lines(line)

    def _format_time(self, at: str) -> str:
        """Return a time in local time, with its date unless it is today."""
        try:
            moment = datetime.fromisoformat(at).astimezone()
        except ValueError:
            return ""
        is_today = moment.date() == datetime.now().astimezone().date()
        return moment.strftime(
            "%H:%M" if is_today or self.width < _WIDE_COLUMNS else "%Y-%m-%d %H:%M"
        )

    def render_markdown(self, text: str) -> list[SegmentLine]:
        """Return Markdown with one empty line between its blocks."""
        lines: list[SegmentLine] = []
        for piece in split_blocks(strip_controls(text)):
            if lines:
                lines.append([])
            lines += self._render_markdown_block(piece)
        return lines

    def _render_markdown_block(self, piece: str) -> list[SegmentLine]:
        if (kept := self._cache.get(piece)) is not None:
            self._cache.move_to_end(piece)
            return kept
        # Importing Markdown takes as long as all else that the first paint needs.
        from clew.tui.text.markup import NarrowMarkdown  # noqa: PLC0415

        lines = self._render_lines(
            NarrowMarkdown(piece.strip("\n"), code_theme=self.palette.code_theme)
        )
        while lines and not "".join(segment.text for segment in lines[0]).strip():
            del lines[0]
        while lines and not "".join(segment.text for segment in lines[-1]).strip():
            del lines[-1]
        self._cache[piece] = lines
        if len(self._cache) > _CACHE_SIZE:
            self._cache.popitem(last=False)
        return lines

    def _render_tool(self, tool: ToolCallView, *, folded: bool) -> list[SegmentLine]:
        lines = self._render_lines(self._render_call(tool, folded=folded))
        diff = extract_diff(tool)
        if not folded:
            told = tool_details(tool)
            if diff and not is_diff(tool.result):
                # The diff contains its arguments.
                lines, told = [*lines, *self._render_diff(diff, most=_MAX_OPEN_LINES)], tool.result
            elif diff:
                return [*lines, *self._render_diff(diff, most=_MAX_OPEN_LINES)]
            return [*lines, *self._render_content(told)] if told else lines
        if diff:
            return [*lines, *self._render_diff(diff, most=_MAX_PREVIEW_LINES)]
        return [*lines, *self._render_preview(tool.result)]

    def _render_call(self, tool: ToolCallView, *, folded: bool) -> Text:
        """Return one line: progress, name, arguments, and the size of the result."""
        bad = dict.fromkeys((ToolProgress.FAILED, ToolProgress.DENIED), self.palette.bad)
        colour = {ToolProgress.DONE: self.palette.good, **bad}
        style = colour.get(tool.progress, self.palette.accent)
        head = Text.assemble(
            (f"{_SIGNS[tool.progress]} ", style),
            (strip_controls(tool.name), "bold"),
            (f"({truncate_text(format_arguments(tool.args), 300)})", self.palette.quiet),
            no_wrap=True,
            overflow="ellipsis",
        )
        mark = self._fold_mark(tool.result, folded=folded) if "\n" in tool.result else ""
        head.truncate(max(self.width - len(mark), 4), overflow="ellipsis")
        head.append(mark, style=self.palette.quiet)
        return head

    def _render_preview(self, result: str) -> list[SegmentLine]:
        """Return the first line of a result."""
        first = next((line for line in strip_controls(result).splitlines() if line.strip()), "")
        if not first:
            return []
        text = Text.assemble(
            ("  └ ", self.palette.quiet),
            (truncate_text(" ".join(first.split()), 300), self.palette.quiet),
            no_wrap=True,
            overflow="ellipsis",
        )
        return self._render_lines(text)

    def _render_diff(self, lines: Sequence[str], *, most: int) -> list[SegmentLine]:
        """Return the lines of a diff, coloured."""
        shown = [line for line in lines if not line.startswith(_DIFF_HEADERS)]
        drawn: list[SegmentLine] = []
        for line in shown[:most]:
            text = Text.assemble("  ", (strip_controls(line), self.palette.diff_style(line[:1])))
            text.no_wrap, text.overflow = True, "ellipsis"
            drawn += self._render_lines(text)
        if len(shown) > most:
            more = Text(f"  … {len(shown) - most} more lines", style=self.palette.quiet)
            drawn += self._render_lines(more)
        return drawn

    def _render_foldable(self, what: str, text: str, *, folded: bool) -> list[SegmentLine]:
        style = f"italic {self.palette.quiet}"
        head = self._render_lines(
            Text(f"{what}{self._fold_mark(text, folded=folded)}", style=style)
        )
        return head if folded else [*head, *self._render_content(text)]

    def _fold_mark(self, text: str, *, folded: bool) -> str:
        count = text.count("\n") + 1
        return f" {'▸' if folded else '▾'} {count} line{'s' if count != 1 else ''}"

    def _render_content(self, text: str) -> list[SegmentLine]:
        shown = text.splitlines()
        if len(shown) > _MAX_OPEN_LINES:
            shown = [*shown[:_MAX_OPEN_LINES], f"… {len(shown) - _MAX_OPEN_LINES} more lines"]
        bar = Segment("│ ", Style.parse(self.palette.quiet))
        lines = self._render_lines(
            Text(strip_controls("\n".join(shown)), style=self.palette.quiet), less=2
        )
        return [[bar, *line] for line in lines]

    def _render_plain(self, text: str, style: str) -> list[SegmentLine]:
        return self._render_lines(Text(strip_controls(text), style=style))

    def _render_lines(self, what: RenderableType, *, less: int = 0) -> list[SegmentLine]:
        options = self._console.options.update(width=self.width - less)
        return self._console.render_lines(what, options, pad=False)
