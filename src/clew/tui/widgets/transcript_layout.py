"""Layout of blocks as lines: which are rendered, and where each is."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from clew.record import Record, replace
from clew.tui.state.view import Block, BlockKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.tui.state.view import LiveResponse
    from clew.tui.text.renderer import BlockRenderer, SegmentLine

#: Blocks that are rendered at once; earlier ones when scrolled to.
BATCH_SIZE: Final = 30
_FOLDED_KINDS: Final = frozenset({BlockKind.TOOL, BlockKind.THINKING})


class PlacedBlock(Record):
    """Rendered block and its position."""

    block: Block
    folded: bool
    lines: list[SegmentLine]
    #: Empty lines before it.
    gap: int
    #: Its first line, the gap included.
    top: int

    @property
    def end(self) -> int:
        return self.top + self.gap + len(self.lines)


class TranscriptLayout:
    """Layout of the rendered part of a conversation."""

    def __init__(self, painter: BlockRenderer) -> None:
        self.painter = painter
        self.pieces: list[PlacedBlock] = []
        #: Number of pieces of stored blocks; those after it are in progress.
        self.stored_count = 0
        self._blocks: tuple[Block, ...] = ()
        self._first_index = 0
        #: Blocks that the user opened or closed.
        self._toggled: set[str] = set()

    @property
    def height(self) -> int:
        return self.pieces[-1].end if self.pieces else 0

    @property
    def is_complete(self) -> bool:
        """Return whether every loaded block is rendered."""
        return self._first_index == 0

    def update_blocks(self, blocks: tuple[Block, ...], live: LiveResponse) -> int:
        """Render the changed blocks; return the first line that may have changed."""
        self._find_first(blocks)
        wanted = [*blocks[self._first_index :], *_live_blocks(live)]
        same = 0
        for piece, block in zip(self.pieces, wanted, strict=False):
            if piece.block is not block and piece.block != block:
                break
            same += 1
        changed = self.pieces[same - 1].end if same else 0
        self.pieces = self._render_after(self.pieces[:same], wanted[same:])
        self._blocks, self.stored_count = blocks, len(blocks) - self._first_index
        return changed

    def _find_first(self, blocks: tuple[Block, ...]) -> None:
        """Find the first rendered block again, after blocks were prepended."""
        if not self._blocks or not blocks:
            self._first_index, self.pieces = max(0, len(blocks) - BATCH_SIZE), []
            return
        first = self._blocks[self._first_index].key
        if self._first_index < len(blocks) and blocks[self._first_index].key == first:
            return
        keys = [block.key for block in blocks]
        if first in keys:
            self._first_index = keys.index(first)
        else:
            self._first_index, self.pieces = max(0, len(blocks) - BATCH_SIZE), []

    def _render_after(self, kept: list[PlacedBlock], more: Sequence[Block]) -> list[PlacedBlock]:
        for block in more:
            before = kept[-1] if kept else None
            kept.append(self._place_block(block, before))
        return kept

    def _place_block(self, block: Block, before: PlacedBlock | None) -> PlacedBlock:
        folded = _is_foldable(block) != (block.key in self._toggled)
        return PlacedBlock(
            block=block,
            folded=folded,
            lines=self.painter.render_block(block, folded=folded),
            gap=_gap_between(before.block if before else None, block),
            top=before.end if before else 0,
        )

    def render_earlier(self) -> int:
        """Render earlier blocks; return the number of added lines."""
        count = min(BATCH_SIZE, self._first_index)
        self._first_index -= count
        added = self._render_after([], self._blocks[self._first_index : self._first_index + count])
        height = self.height
        self._reposition(added, self.pieces)
        self.stored_count += count
        return self.height - height

    def _reposition(self, kept: list[PlacedBlock], more: list[PlacedBlock]) -> None:
        for piece in more:
            before = kept[-1] if kept else None
            gap = _gap_between(before.block if before else None, piece.block)
            kept.append(replace(piece, gap=gap, top=before.end if before else 0))
        self.pieces = kept

    def toggle_block(self, index: int) -> None:
        """Open or close a block."""
        piece = self.pieces[index]
        self._toggled ^= {piece.block.key}
        turned = self._place_block(piece.block, self.pieces[index - 1] if index else None)
        self._reposition([*self.pieces[:index], turned], self.pieces[index + 1 :])

    def toggle_all(self) -> None:
        """Open every block, or close all if one is open."""
        foldable = [piece for piece in self.pieces if _is_foldable(piece.block)]
        some_open = any(not piece.folded for piece in foldable)
        self._toggled = set() if some_open else {block.key for block in self._blocks}
        self.pieces = self._render_after([], [piece.block for piece in self.pieces])

    def piece_at(self, line: int) -> int | None:
        """Return the index of the piece that contains a line."""
        index = bisect_right(self.pieces, line, key=lambda piece: piece.top) - 1
        return index if index >= 0 and line < self.height else None

    def find_piece(self, key: str) -> int | None:
        """Return the index of a block's piece, if it is rendered."""
        return next((n for n, piece in enumerate(self.pieces) if piece.block.key == key), None)

    def rerender(self, painter: BlockRenderer) -> None:
        """Render for another width or palette; distant blocks are rendered later."""
        self.painter = painter
        blocks, live = self._blocks, [p.block for p in self.pieces[self.stored_count :]]
        self._first_index = max(0, len(blocks) - BATCH_SIZE)
        self.pieces = self._render_after([], [*blocks[self._first_index :], *live])
        self.stored_count = len(blocks) - self._first_index


def _live_blocks(live: LiveResponse) -> list[Block]:
    """Return the response in progress as blocks that have no entry yet."""
    found: list[Block] = []
    if live.thinking:
        thinking = Block(
            key=f"{live.turn} thinking", kind=BlockKind.THINKING, seq=0, text=live.thinking
        )
        found.append(thinking)
    if live.text:
        found.append(Block(key=f"{live.turn} text", kind=BlockKind.ANSWER, seq=0, text=live.text))
    return found


def _gap_between(before: Block | None, block: Block) -> int:
    """Return the empty lines between blocks: none between tool calls and thinking."""
    if before is None or (_is_foldable(before) and _is_foldable(block)):
        return 0
    return 1


def _is_foldable(block: Block) -> bool:
    """Return whether a block is one line until it is opened."""
    return block.taken or block.kind in _FOLDED_KINDS
