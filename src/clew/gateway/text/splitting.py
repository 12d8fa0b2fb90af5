"""Splitting of text blocks into messages within a limit; what fits stays whole."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Protocol

from clew.gateway.text.rich_text import (
    BlockFrame,
    CodeFrame,
    TextBlock,
    TextRun,
    merge_runs,
    split_graphemes,
    split_words,
)
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class TextCost(Record, kw_only=False):
    """The size of a text: its length in the platform's unit, and its formatting marks."""

    length: int
    marks: int = 0

    def __add__(self, other: TextCost) -> TextCost:
        return TextCost(self.length + other.length, self.marks + other.marks)

    def fits_within(self, limit: TextCost) -> bool:
        return self.length <= limit.length and self.marks <= limit.marks


class TextMeasure(Protocol):
    """A platform's measure of text: each cost is at least that of the written form."""

    def run_cost(self, run: TextRun, frame: BlockFrame | None) -> TextCost: ...

    def frame_cost(self, frame: BlockFrame) -> TextCost:
        """Return the cost of opening and closing a frame once."""
        ...

    def text_cost(self, text: str) -> TextCost: ...

    def can_link(self, address: str) -> bool:
        """Return whether an address may be hidden behind a text."""
        ...


ZERO_COST = TextCost(0)
_SLICE_SIZE = 16


def split_blocks(
    pieces: Iterable[TextBlock], measure: TextMeasure, limit: TextCost
) -> list[list[TextBlock]]:
    """
    Split blocks into messages, in order, each within ``limit``.

    A list or code block that fits into one message stays whole. Longer ones are split
    between lines, lines between words, words between user-perceived characters. A split
    code block continues as a code block in each message. Messages without text are dropped.
    """
    packer = _MessagePacker(measure, limit)
    for _, group in groupby(pieces, key=lambda piece: piece.group):
        packer.add_group(list(group))
    packer.close_message()
    return [part for part in packer.parts if not all(piece.is_blank for piece in part)]


class _MessagePacker:
    """Packs blocks into messages."""

    def __init__(self, measure: TextMeasure, limit: TextCost) -> None:
        self._measure, self._limit = measure, limit
        self.parts: list[list[TextBlock]] = []
        self._open: list[TextBlock] = []
        self._used = ZERO_COST

    def close_message(self) -> None:
        if self._open:
            self.parts.append(self._open)
        self._open, self._used = [], ZERO_COST

    def add_group(self, group: Sequence[TextBlock]) -> None:
        if not self._cost_appended(group).fits_within(self._limit) and self._cost_alone(
            group
        ).fits_within(self._limit):
            self.close_message()
        for piece in group:
            self._add_block(piece)

    def _cost_alone(self, group: Sequence[TextBlock]) -> TextCost:
        return _group_cost(self._measure, group, before=None)

    def _cost_appended(self, group: Sequence[TextBlock]) -> TextCost:
        before = self._open[-1] if self._open else None
        return self._used + _group_cost(self._measure, group, before=before)

    def _add_block(self, piece: TextBlock) -> None:
        if self._append_if_fits(piece):
            return
        if self._open and self._cost_alone([piece]).fits_within(self._limit):
            self.close_message()
            self._append_block(piece, self._cost_alone([piece]))
            return
        room = self._cost_appended([replace(piece, runs=())]) if self._has_room() else None
        for part in self._split_block(piece, room):
            if not self._append_if_fits(part):
                self.close_message()
                self._append_block(part, self._cost_alone([part]))

    def _has_room(self) -> bool:
        """Return whether to begin a long block in the open message, not in a new one."""
        return bool(self._open) and self._used.length * 2 < self._limit.length

    def _append_if_fits(self, piece: TextBlock) -> bool:
        cost = self._cost_appended([piece])
        if cost.fits_within(self._limit):
            self._open.append(piece)
            self._used = cost
            return True
        return False

    def _append_block(self, piece: TextBlock, cost: TextCost) -> None:
        self._open.append(piece)
        self._used = cost

    def _split_block(self, piece: TextBlock, room: TextCost | None) -> Iterator[TextBlock]:
        """Yield parts that fill a message each; the first fills the rest of the open message."""
        frame = _frame_cost(self._measure, piece.frame)
        used = frame if room is None else room
        runs: list[TextRun] = []
        open_: TextRun | None = None
        glue = piece.separator
        for atom in self._split_runs(piece):
            longer = _join_runs(open_, atom)
            more = self._measure.run_cost(longer or atom, piece.frame)
            if open_ is not None and longer is None:
                used += self._measure.run_cost(open_, piece.frame)
                runs.append(open_)
            if not (used + more).fits_within(self._limit) and (runs or open_ is not None):
                yield _part_of(piece, [*runs, *([open_] if longer and open_ else [])], glue)
                used, runs, open_, glue = frame, [], atom, ""
            else:
                open_ = longer or atom
        if open_ is not None:
            yield _part_of(piece, [*runs, open_], glue)

    def _split_runs(self, piece: TextBlock) -> Iterator[TextRun]:
        """Yield words; one that is too long for a message yields its characters."""
        frame = _frame_cost(self._measure, piece.frame)
        for atom in split_words(piece.runs):
            if (frame + self._measure.run_cost(atom, piece.frame)).fits_within(self._limit):
                yield atom
                continue
            for slice_ in _slice_characters(split_graphemes(atom.text)):
                small = replace(atom, text=slice_)
                if (frame + self._measure.run_cost(small, piece.frame)).fits_within(self._limit):
                    yield small
                else:
                    # A character with more accents than fit into a message.
                    yield from (replace(atom, text=one) for one in slice_)


def _slice_characters(characters: Sequence[str]) -> Iterator[str]:
    """Yield a few characters at a time: measuring each one would be slow."""
    for begins in range(0, len(characters), _SLICE_SIZE):
        slice_ = characters[begins : begins + _SLICE_SIZE]
        if max(map(len, slice_)) > _SLICE_SIZE:
            yield from slice_
        else:
            yield "".join(slice_)


def _join_runs(run: TextRun | None, atom: TextRun) -> TextRun | None:
    """Return both as one run if their format is the same."""
    if run is None or (run.style, run.link) != (atom.style, atom.link):
        return None
    return replace(run, text=run.text + atom.text)


def _part_of(piece: TextBlock, runs: Sequence[TextRun], glue: str) -> TextBlock:
    return replace(piece, runs=merge_runs(runs), separator=glue)


def _group_cost(
    measure: TextMeasure, group: Sequence[TextBlock], *, before: TextBlock | None
) -> TextCost:
    cost = ZERO_COST
    for piece in group:
        if before is not None:
            cost += measure.text_cost(piece.separator)
        if piece.frame is not None and not continues_frame(before, piece):
            cost += measure.frame_cost(piece.frame)
        for run in piece.runs:
            cost += measure.run_cost(run, piece.frame)
        before = piece
    return cost


def _frame_cost(measure: TextMeasure, frame: BlockFrame | None) -> TextCost:
    return ZERO_COST if frame is None else measure.frame_cost(frame)


def continues_frame(before: TextBlock | None, piece: TextBlock) -> bool:
    """Return whether a block continues the frame of the one before it."""
    if before is None or before.frame != piece.frame:
        return False
    # Two adjacent code blocks stay separate.
    return not isinstance(piece.frame, CodeFrame) or piece.separator in ("", "\n")


def group_by_frame(
    part: Sequence[TextBlock],
) -> Iterator[tuple[BlockFrame | None, list[TextBlock]]]:
    """Group the blocks of a message by frame."""
    open_: list[TextBlock] = []
    for piece in part:
        if open_ and not (
            continues_frame(open_[-1], piece) or (piece.frame is None and open_[-1].frame is None)
        ):
            yield open_[0].frame, open_
            open_ = []
        open_.append(piece)
    if open_:
        yield open_[0].frame, open_
