"""Packing pieces into messages: none over the limit, nothing torn that fits whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

from clew.gateway.text.pieces import Code, Frame, Piece, Run, atoms, graphemes, merged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Cost:
    """What something takes of a message: length in the platform's unit, and marks of formatting."""

    length: int
    marks: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.length + other.length, self.marks + other.marks)

    def within(self, limit: Cost) -> bool:
        return self.length <= limit.length and self.marks <= limit.marks


class Measure(Protocol):
    """How a platform counts: each cost is at least what the written form takes."""

    def run(self, run: Run, frame: Frame | None) -> Cost: ...

    def frame(self, frame: Frame) -> Cost:
        """Opening and closing it once."""
        ...

    def text(self, text: str) -> Cost: ...

    def links(self, address: str) -> bool:
        """Whether an address may be hidden behind a text."""
        ...


NOTHING = Cost(0)
_SLICE = 16


def split(pieces: Iterable[Piece], measure: Measure, limit: Cost) -> list[list[Piece]]:
    """
    The pieces as messages, in order, each within ``limit``.

    A list or block that fits into a message is in one; longer ones are parted between lines, lines
    between words, words between characters as a reader sees them. A block of code that is parted
    goes on as one in each message. Messages without any text are left out.
    """
    packer = _Packer(measure, limit)
    for _, group in groupby(pieces, key=lambda piece: piece.group):
        packer.put_group(list(group))
    packer.close()
    return [part for part in packer.parts if not all(piece.blank for piece in part)]


class _Packer:
    def __init__(self, measure: Measure, limit: Cost) -> None:
        self._measure, self._limit = measure, limit
        self.parts: list[list[Piece]] = []
        self._open: list[Piece] = []
        self._used = NOTHING

    def close(self) -> None:
        if self._open:
            self.parts.append(self._open)
        self._open, self._used = [], NOTHING

    def put_group(self, group: Sequence[Piece]) -> None:
        if not self._after(group).within(self._limit) and self._alone(group).within(self._limit):
            self.close()
        for piece in group:
            self._put(piece)

    def _alone(self, group: Sequence[Piece]) -> Cost:
        return _cost(self._measure, group, before=None)

    def _after(self, group: Sequence[Piece]) -> Cost:
        before = self._open[-1] if self._open else None
        return self._used + _cost(self._measure, group, before=before)

    def _put(self, piece: Piece) -> None:
        if self._fits(piece):
            return
        if self._open and self._alone([piece]).within(self._limit):
            self.close()
            self._add(piece, self._alone([piece]))
            return
        room = self._after([replace(piece, runs=())]) if self._has_room() else None
        for part in self._cut(piece, room):
            if not self._fits(part):
                self.close()
                self._add(part, self._alone([part]))

    def _has_room(self) -> bool:
        """Whether beginning a long piece in the open message is better than leaving it short."""
        return bool(self._open) and self._used.length * 2 < self._limit.length

    def _fits(self, piece: Piece) -> bool:
        cost = self._after([piece])
        if cost.within(self._limit):
            self._open.append(piece)
            self._used = cost
            return True
        return False

    def _add(self, piece: Piece, cost: Cost) -> None:
        self._open.append(piece)
        self._used = cost

    def _cut(self, piece: Piece, room: Cost | None) -> Iterator[Piece]:
        """The piece in parts that fill a message each; the first one what is left of the open."""
        frame = _frame_cost(self._measure, piece.frame)
        used = frame if room is None else room
        runs: list[Run] = []
        open_: Run | None = None
        glue = piece.glue
        for atom in self._small(piece):
            longer = _joined(open_, atom)
            more = self._measure.run(longer or atom, piece.frame)
            if open_ is not None and longer is None:
                used += self._measure.run(open_, piece.frame)
                runs.append(open_)
            if not (used + more).within(self._limit) and (runs or open_ is not None):
                yield _part(piece, [*runs, *([open_] if longer and open_ else [])], glue)
                used, runs, open_, glue = frame, [], atom, ""
            else:
                open_ = longer or atom
        if open_ is not None:
            yield _part(piece, [*runs, open_], glue)

    def _small(self, piece: Piece) -> Iterator[Run]:
        """Words; a word or link that fits into no message in characters as a reader sees them."""
        frame = _frame_cost(self._measure, piece.frame)
        for atom in atoms(piece.runs):
            if (frame + self._measure.run(atom, piece.frame)).within(self._limit):
                yield atom
                continue
            for slice_ in _slices(graphemes(atom.text)):
                small = replace(atom, text=slice_)
                if (frame + self._measure.run(small, piece.frame)).within(self._limit):
                    yield small
                else:
                    # A pile of accents longer than a message.
                    yield from (replace(atom, text=one) for one in slice_)


def _slices(characters: Sequence[str]) -> Iterator[str]:
    """A few characters at a time: measuring each would take long."""
    for begins in range(0, len(characters), _SLICE):
        slice_ = characters[begins : begins + _SLICE]
        if max(map(len, slice_)) > _SLICE:
            yield from slice_
        else:
            yield "".join(slice_)


def _joined(run: Run | None, atom: Run) -> Run | None:
    """One run of both, if they have one format."""
    if run is None or (run.style, run.link) != (atom.style, atom.link):
        return None
    return replace(run, text=run.text + atom.text)


def _part(piece: Piece, runs: Sequence[Run], glue: str) -> Piece:
    return replace(piece, runs=merged(runs), glue=glue)


def _cost(measure: Measure, group: Sequence[Piece], *, before: Piece | None) -> Cost:
    cost = NOTHING
    for piece in group:
        if before is not None:
            cost += measure.text(piece.glue)
        if piece.frame is not None and not continues(before, piece):
            cost += measure.frame(piece.frame)
        for run in piece.runs:
            cost += measure.run(run, piece.frame)
        before = piece
    return cost


def _frame_cost(measure: Measure, frame: Frame | None) -> Cost:
    return NOTHING if frame is None else measure.frame(frame)


def continues(before: Piece | None, piece: Piece) -> bool:
    """Whether a piece stands in the frame of the one before it."""
    if before is None or before.frame != piece.frame:
        return False
    # Two blocks of code one after the other stay two.
    return not isinstance(piece.frame, Code) or piece.glue in ("", "\n")


def framed(part: Sequence[Piece]) -> Iterator[tuple[Frame | None, list[Piece]]]:
    """The pieces of a message by the frames in which they are written."""
    open_: list[Piece] = []
    for piece in part:
        if open_ and not (
            continues(open_[-1], piece) or (piece.frame is None and open_[-1].frame is None)
        ):
            yield open_[0].frame, open_
            open_ = []
        open_.append(piece)
    if open_:
        yield open_[0].frame, open_
