"""Blocks as lines of a terminal. Each piece is drawn once for a width."""

from __future__ import annotations

import io
import json
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from rich.theme import Theme

from clew.core.text import shorten
from clew.tui.state.view import Block, Kind, Progress, Tool
from clew.tui.text.chunks import chunks
from clew.tui.text.clean import clean

if TYPE_CHECKING:
    from rich.console import RenderableType

    from clew.tui.text.palette import Palette

Line = list[Segment]
#: Pieces that are kept drawn.
_KEPT: Final = 2000
#: Lines of a tool's result, or of thoughts, that are shown when they are open.
_MOST: Final = 400
_SIGNS: Final = {
    Progress.ASKED: "○",
    Progress.RUNNING: "◐",
    Progress.DONE: "✓",
    Progress.FAILED: "✗",
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
            (shorten(what, 300), f"strike {self.palette.quiet}"),
            no_wrap=True,
            overflow="ellipsis",
        )
        head = self._lines(quiet)
        if folded:
            return head
        return [*head, *self._inside(_unfolded(block.tool) if block.tool else block.text)]

    def _block(self, block: Block, *, folded: bool) -> list[Line]:
        match block.kind:
            case Kind.USER:
                return self._plain(block.text, "bold")
            case Kind.ANSWER:
                return self.markdown(block.text)
            case Kind.THINKING:
                return self._foldable("thinking", block.text, folded=folded)
            case Kind.TOOL if block.tool is not None:
                return self._tool(block.tool, folded=folded)
            case _:
                return self._plain(f"· {block.text}", f"italic {self.palette.quiet}")

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
        colour = {Progress.DONE: self.palette.good, Progress.FAILED: self.palette.bad}
        style = colour.get(tool.progress, self.palette.accent)
        head = Text.assemble(
            (f"{_SIGNS[tool.progress]} ", style),
            (clean(tool.name), "bold"),
            (f"({shorten(_args(tool.args), 300)})", self.palette.quiet),
            no_wrap=True,
            overflow="ellipsis",
        )
        if tool.result:
            head.append(self._mark(tool.result, folded=folded), style=self.palette.quiet)
            fitting = self.width - len(self._mark(tool.result, folded=folded))
            name = Text.assemble(head[: max(fitting, 4)], end="")
            head = name if len(head) <= self.width else name + head[-(self.width - fitting) :]
        lines = self._lines(head)
        if folded or not (tool.result or tool.args):
            return lines
        return [*lines, *self._inside(_unfolded(tool))]

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


def _args(args: str) -> str:
    """Arguments on one line, without the brackets of JSON."""
    try:
        found: object = json.loads(args)
    except ValueError:
        return clean(" ".join(args.split()))
    if not isinstance(found, dict):
        return clean(args)
    fields: dict[str, object] = found  # pyright: ignore[reportUnknownVariableType]
    told = (f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in fields.items())
    return clean(", ".join(told))


def _unfolded(tool: Tool) -> str:
    try:
        args = json.dumps(json.loads(tool.args), indent=1, ensure_ascii=False)
    except ValueError:
        args = tool.args
    return "\n".join(filter(None, [args if args not in ("{}", "") else "", tool.result]))
