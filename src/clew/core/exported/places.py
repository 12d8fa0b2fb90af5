"""Which lines of an export are where they were written, and which were changed or moved."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from clew.core.exported.lines import Unreadable, check_seal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NUMBER: Final = re.compile(rb'\{"n":(\d{1,18}),')
#: Stands for the number of a line that was changed.
_NONE: Final = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """The lines that cannot be taken as they come, by where they stand (from 1)."""

    #: Lines that are whole.
    whole: int
    #: Why a line is known to have been changed.
    changed: dict[int, str]
    #: The number of a line that stands where another belongs.
    moved: dict[int, int]

    def excepted(self, line: int) -> bool:
        return line in self.changed or line in self.moved


def places(lines: Iterable[bytes]) -> Places:
    """Look at every line of a file, each with its line end."""
    numbers, changed = array("q"), dict[int, str]()
    for at, line in enumerate(lines, 1):
        try:
            numbers.append(_number(line))
        except Unreadable as error:
            changed[at] = str(error)
            numbers.append(_NONE)
    return Places(whole=len(numbers) - len(changed), changed=changed, moved=_moved(numbers))


def _number(line: bytes) -> int:
    if not line.endswith(b"\n"):
        raise Unreadable("it has no line end")
    check_seal(line[:-1])
    stated = _NUMBER.match(line)
    if stated is None or (number := int(stated[1])) == _NONE:
        raise Unreadable("it has no number")
    return number


def _moved(numbers: Sequence[int]) -> dict[int, int]:
    """The fewest lines without which all others stand in order."""
    whole = [number for number in numbers if number != _NONE]
    if all(one < other for one, other in pairwise(whole)):
        return {}
    kept = _longest_rise(numbers)
    # Of several such choices the one that leaves in place what stands by its own number.
    fixed = {index for index, number in enumerate(numbers) if number == index + 1}
    if len(fixed) >= len(kept):
        kept = fixed
    return {
        at: number for at, number in enumerate(numbers, 1) if number != _NONE and at - 1 not in kept
    }


def _longest_rise(numbers: Sequence[int]) -> set[int]:
    """The indexes of a longest subsequence that rises (patience sorting)."""
    tops: list[int] = []  # the smallest number that ends a rise of each length
    ends: list[int] = []  # and its index
    before: dict[int, int | None] = {}
    for index, number in enumerate(numbers):
        if number == _NONE:
            continue
        length = bisect_left(tops, number)
        before[index] = ends[length - 1] if length else None
        if length == len(tops):
            tops.append(number)
            ends.append(index)
        else:
            tops[length], ends[length] = number, index
    kept: set[int] = set()
    at: int | None = ends[-1] if ends else None
    while at is not None:
        kept.add(at)
        at = before[at]
    return kept
