"""Blocks as lines of a terminal. Each piece is drawn once for a width."""

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
from clew.tui.state.view import Block, Kind, Progress, Tool
from clew.tui.state.words import call_args, duration, unfolded
from clew.tui.text.chunks import chunks
from clew.tui.text.clean import clean
from clew.tui.text.diffs import diff_of, is_diff

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from clew.tui.text.palette import Palette

Line = list[Segment]
#: Pieces that are kept drawn.
_KEPT: Final = 2000
#: Lines of a tool's result, or of thoughts, that are shown when they are open.
_MOST: Final = 400
#: Lines of a diff that are shown before it is opened.
_FOLDED_DIFF: Final = 12
#: Columns from which a message has the name and the day beside it.
_WIDE: Final = 60
#: Lines of a diff that say which files it is of in the words of a program.
_DIFF_HEADS: Final = ("diff --git", "index ")
_SIGNS: Final = {
    Progress.ASKED: "○",
    Progress.RUNNING: "◐",
    Progress.DONE: "✓",
    Progress.FAILED: "✗",
    Progress.DENIED: "⊘",
}


class Painter:
    """Draws for one width and one palette."""

    def __init__(self, width: int, palette: Palette) -> None:
        self.width, self.palette = max(width, 10), palette
        self._console = Console(
            file=io.StringIO(),
            width=self.width,
            force_terminal=True,
            color_system="truecolor",
            legacy_windows=False,
            theme=Theme(palette.styles()),
            _environ={},
        )
        self._drawn: OrderedDict[str, list[Line]] = OrderedDict()

    def block(self, block: Block, *, folded: bool) -> list[Line]:
        """The lines of a block, without space around it."""
        if block.taken:
            return self._taken(block, folded=folded)
        return self._block(block, folded=folded)

    def _taken(self, block: Block, *, folded: bool) -> list[Line]:
        """What somebody went back over: a line that says so, and what it was where it is open."""
        sign = "▸" if folded else "▾"
        said = block.tool.name if block.tool else block.text
        what = f" {sign} {' '.join(clean(said).split())}"
        quiet = Text.assemble(
            ("taken back", f"italic {self.palette.quiet}"),
            (truncate_text(what, 300), f"strike {self.palette.quiet}"),
            no_wrap=True,
            overflow="ellipsis",
        )
        head = self._lines(quiet)
        if folded:
            return head
        return [*head, *self._inside(unfolded(block.tool) if block.tool else block.text)]

    def _block(self, block: Block, *, folded: bool) -> list[Line]:
        match block.kind:
            case Kind.USER:
                return self._message(block)
            case Kind.ANSWER:
                return [*self.markdown(block.text), *self._totals(block)]
            case Kind.THINKING:
                return self._foldable("thinking", block.text, folded=folded)
            case Kind.TOOL if block.tool is not None:
                return self._tool(block.tool, folded=folded)
            case _:
                return self._plain(f"· {block.text}", f"italic {self.palette.quiet}")

    def _message(self, block: Block) -> list[Line]:
        """What a person said; who and when stands at the right of its first line."""
        stamp = self._stamp(block.at)
        if self.width >= _WIDE and stamp:
            stamp = f"You {stamp}"
        room = len(stamp) + 2 if stamp else 0
        lines = self._lines(Text(clean(block.text), style="bold"), less=room)
        if not stamp or not lines:
            return lines
        gap = self.width - len(stamp) - sum(segment.cell_length for segment in lines[0])
        quiet = Style.parse(self.palette.quiet)
        return [[*lines[0], Segment(" " * gap), Segment(stamp, quiet)], *lines[1:]]

    def _totals(self, block: Block) -> list[Line]:
        """Below an answer: who gave it, when, how long it took."""
        if block.totals is None:
            return []
        model, tokens = block.totals.model, block.totals.tokens
        facts = [
            "Clew" if not model else f"Clew ({model})",
            "" if block.totals.seconds is None else duration(block.totals.seconds),
            f"{tokens:,} token{'s' if tokens != 1 else ''}" if tokens else "",
            self._stamp(block.at),
        ]
        told = " · ".join(filter(None, facts))
        line = Text(clean(told), style=self.palette.quiet, no_wrap=True, overflow="ellipsis")
        return self._lines(line)

    def _stamp(self, at: str) -> str:
        """A moment in local time, with its day where that is another one."""
        try:
            moment = datetime.fromisoformat(at).astimezone()
        except ValueError:
            return ""
        is_today = moment.date() == datetime.now().astimezone().date()
        return moment.strftime("%H:%M" if is_today or self.width < _WIDE else "%Y-%m-%d %H:%M")

    def markdown(self, text: str) -> list[Line]:
        """Markdown, with one empty line between its pieces."""
        lines: list[Line] = []
        for piece in chunks(clean(text)):
            if lines:
                lines.append([])
            lines += self._piece(piece)
        return lines

    def _piece(self, piece: str) -> list[Line]:
        if (kept := self._drawn.get(piece)) is not None:
            self._drawn.move_to_end(piece)
            return kept
        # Markdown takes as long to import as everything else that is needed for a first picture.
        from clew.tui.text.markup import Markup  # noqa: PLC0415

        lines = self._lines(Markup(piece.strip("\n"), code_theme=self.palette.code_theme))
        while lines and not "".join(segment.text for segment in lines[0]).strip():
            del lines[0]
        while lines and not "".join(segment.text for segment in lines[-1]).strip():
            del lines[-1]
        self._drawn[piece] = lines
        if len(self._drawn) > _KEPT:
            self._drawn.popitem(last=False)
        return lines

    def _tool(self, tool: Tool, *, folded: bool) -> list[Line]:
        lines = self._lines(self._call(tool, folded=folded))
        diff = diff_of(tool)
        if not folded:
            told = unfolded(tool)
            if diff and not is_diff(tool.result):
                # Its texts stand in the diff.
                lines, told = [*lines, *self._diff(diff, most=_MOST)], tool.result
            elif diff:
                return [*lines, *self._diff(diff, most=_MOST)]
            return [*lines, *self._inside(told)] if told else lines
        if diff:
            return [*lines, *self._diff(diff, most=_FOLDED_DIFF)]
        return [*lines, *self._preview(tool.result)]

    def _call(self, tool: Tool, *, folded: bool) -> Text:
        """One line: how far it is, its name, its arguments, and how much it gave back."""
        bad = dict.fromkeys((Progress.FAILED, Progress.DENIED), self.palette.bad)
        colour = {Progress.DONE: self.palette.good, **bad}
        style = colour.get(tool.progress, self.palette.accent)
        head = Text.assemble(
            (f"{_SIGNS[tool.progress]} ", style),
            (clean(tool.name), "bold"),
            (f"({truncate_text(call_args(tool.args), 300)})", self.palette.quiet),
            no_wrap=True,
            overflow="ellipsis",
        )
        mark = self._mark(tool.result, folded=folded) if "\n" in tool.result else ""
        head.truncate(max(self.width - len(mark), 4), overflow="ellipsis")
        head.append(mark, style=self.palette.quiet)
        return head

    def _preview(self, result: str) -> list[Line]:
        """The first line of a result."""
        first = next((line for line in clean(result).splitlines() if line.strip()), "")
        if not first:
            return []
        text = Text.assemble(
            ("  └ ", self.palette.quiet),
            (truncate_text(" ".join(first.split()), 300), self.palette.quiet),
            no_wrap=True,
            overflow="ellipsis",
        )
        return self._lines(text)

    def _diff(self, lines: Sequence[str], *, most: int) -> list[Line]:
        """The lines of a diff, each in the colour of what it is."""
        shown = [line for line in lines if not line.startswith(_DIFF_HEADS)]
        drawn: list[Line] = []
        for line in shown[:most]:
            text = Text.assemble("  ", (clean(line), self.palette.of_diff(line[:1])))
            text.no_wrap, text.overflow = True, "ellipsis"
            drawn += self._lines(text)
        if len(shown) > most:
            more = Text(f"  … {len(shown) - most} more lines", style=self.palette.quiet)
            drawn += self._lines(more)
        return drawn

    def _foldable(self, what: str, text: str, *, folded: bool) -> list[Line]:
        style = f"italic {self.palette.quiet}"
        head = self._lines(Text(f"{what}{self._mark(text, folded=folded)}", style=style))
        return head if folded else [*head, *self._inside(text)]

    def _mark(self, text: str, *, folded: bool) -> str:
        count = text.count("\n") + 1
        return f" {'▸' if folded else '▾'} {count} line{'s' if count != 1 else ''}"

    def _inside(self, text: str) -> list[Line]:
        shown = text.splitlines()
        if len(shown) > _MOST:
            shown = [*shown[:_MOST], f"… {len(shown) - _MOST} more lines"]
        bar = Segment("│ ", Style.parse(self.palette.quiet))
        lines = self._lines(Text(clean("\n".join(shown)), style=self.palette.quiet), less=2)
        return [[bar, *line] for line in lines]

    def _plain(self, text: str, style: str) -> list[Line]:
        return self._lines(Text(clean(text), style=style))

    def _lines(self, what: RenderableType, *, less: int = 0) -> list[Line]:
        options = self._console.options.update(width=self.width - less)
        return self._console.render_lines(what, options, pad=False)
