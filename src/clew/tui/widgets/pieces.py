"""Blocks laid out one below the other, as lines: which are drawn, and where each stands."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from clew.tui.state.view import Block, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.tui.state.view import Live
    from clew.tui.text.painter import Line, Painter

#: Blocks that are drawn at once; those before come when somebody scrolls there.
STEP: Final = 30
_FOLDED: Final = frozenset({Kind.TOOL, Kind.THINKING})


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A block as it is drawn."""

    block: Block
    folded: bool
    lines: list[Line]
    #: Empty lines before it.
    gap: int
    #: Its first line, the gap included.
    top: int

    @property
    def end(self) -> int:
        return self.top + self.gap + len(self.lines)


class Layout:
    """The drawn part of a conversation."""

    def __init__(self, painter: Painter) -> None:
        self.painter = painter
        self.pieces: list[Piece] = []
        #: How many of the pieces are of stored blocks; those behind are being made.
        self.stored = 0
        self._blocks: tuple[Block, ...] = ()
        self._from = 0
        #: Blocks that a person opened or closed.
        self._turned: set[str] = set()

    @property
    def height(self) -> int:
        return self.pieces[-1].end if self.pieces else 0

    @property
    def is_complete(self) -> bool:
        """Whether everything that is loaded is drawn."""
        return self._from == 0

    def show(self, blocks: tuple[Block, ...], live: Live) -> int:
        """Lay out anew what is not as it was; the first line that may have changed."""
        self._place(blocks)
        wanted = [*blocks[self._from :], *_being_made(live)]
        same = 0
        for piece, block in zip(self.pieces, wanted, strict=False):
            if piece.block is not block and piece.block != block:
                break
            same += 1
        changed = self.pieces[same - 1].end if same else 0
        self.pieces = self._drawn(self.pieces[:same], wanted[same:])
        self._blocks, self.stored = blocks, len(blocks) - self._from
        return changed

    def _place(self, blocks: tuple[Block, ...]) -> None:
        """Where the drawn part begins, in blocks that may have come before it."""
        if not self._blocks or not blocks:
            self._from, self.pieces = max(0, len(blocks) - STEP), []
            return
        first = self._blocks[self._from].key
        if self._from < len(blocks) and blocks[self._from].key == first:
            return
        keys = [block.key for block in blocks]
        if first in keys:
            self._from = keys.index(first)
        else:
            self._from, self.pieces = max(0, len(blocks) - STEP), []

    def _drawn(self, kept: list[Piece], more: Sequence[Block]) -> list[Piece]:
        for block in more:
            before = kept[-1] if kept else None
            kept.append(self._piece(block, before))
        return kept

    def _piece(self, block: Block, before: Piece | None) -> Piece:
        folded = _is_folded(block) != (block.key in self._turned)
        return Piece(
            block=block,
            folded=folded,
            lines=self.painter.block(block, folded=folded),
            gap=_gap(before.block if before else None, block),
            top=before.end if before else 0,
        )

    def more(self) -> int:
        """Draw blocks that stand before; how many lines came."""
        count = min(STEP, self._from)
        self._from -= count
        added = self._drawn([], self._blocks[self._from : self._from + count])
        height = self.height
        self._put_behind(added, self.pieces)
        self.stored += count
        return self.height - height

    def _put_behind(self, kept: list[Piece], more: list[Piece]) -> None:
        for piece in more:
            before = kept[-1] if kept else None
            gap = _gap(before.block if before else None, piece.block)
            kept.append(replace(piece, gap=gap, top=before.end if before else 0))
        self.pieces = kept

    def turn(self, index: int) -> None:
        """Open or close a block."""
        piece = self.pieces[index]
        self._turned ^= {piece.block.key}
        turned = self._piece(piece.block, self.pieces[index - 1] if index else None)
        self._put_behind([*self.pieces[:index], turned], self.pieces[index + 1 :])

    def turn_all(self) -> None:
        """Open everything, or close it if something is open."""
        foldable = [piece for piece in self.pieces if _is_folded(piece.block)]
        some_open = any(not piece.folded for piece in foldable)
        self._turned = set() if some_open else {block.key for block in self._blocks}
        self.pieces = self._drawn([], [piece.block for piece in self.pieces])

    def at(self, line: int) -> int | None:
        """The index of the piece that a line is in."""
        index = bisect_right(self.pieces, line, key=lambda piece: piece.top) - 1
        return index if index >= 0 and line < self.height else None

    def index(self, key: str) -> int | None:
        """The index of the piece of a block, if it is drawn."""
        return next((n for n, piece in enumerate(self.pieces) if piece.block.key == key), None)

    def redrawn(self, painter: Painter) -> None:
        """Draw everything for another width or other colours; what is far back comes later."""
        self.painter = painter
        blocks, live = self._blocks, [p.block for p in self.pieces[self.stored :]]
        self._from = max(0, len(blocks) - STEP)
        self.pieces = self._drawn([], [*blocks[self._from :], *live])
        self.stored = len(blocks) - self._from


def _being_made(live: Live) -> list[Block]:
    """The response that is being made, as blocks that no entry has yet."""
    found: list[Block] = []
    if live.thinking:
        thinking = Block(key=f"{live.turn} thinking", kind=Kind.THINKING, seq=0, text=live.thinking)
        found.append(thinking)
    if live.text:
        found.append(Block(key=f"{live.turn} text", kind=Kind.ANSWER, seq=0, text=live.text))
    return found


def _gap(before: Block | None, block: Block) -> int:
    """Tool calls and thoughts stand close together, everything else apart."""
    if before is None or (_is_folded(before) and _is_folded(block)):
        return 0
    return 1


def _is_folded(block: Block) -> bool:
    """Whether a block is one line until somebody opens it."""
    return block.taken or block.kind in _FOLDED
