"""Index of an export's lines: in position, changed or moved."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from clew.core.export_format.sealed_lines import MalformedLine, check_seal
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NUMBER: Final = re.compile(rb'\{"n":(\d{1,18}),')
#: Number of a line that was changed.
_NONE: Final = 0


class LineIndex(Record):
    """Changed and moved lines, by their position in the file (from 1)."""

    #: Number of intact lines.
    whole: int
    #: Reason why a line counts as changed, by position.
    changed: dict[int, str]
    #: Number of a line in a wrong position, by position.
    moved: dict[int, int]


def index_lines(lines: Iterable[bytes]) -> LineIndex:
    """Index every line of a file, each with its line end."""
    numbers, changed = array("q"), dict[int, str]()
    for at, line in enumerate(lines, 1):
        try:
            numbers.append(_read_number(line))
        except MalformedLine as error:
            changed[at] = str(error)
            numbers.append(_NONE)
    return LineIndex(whole=len(numbers) - len(changed), changed=changed, moved=_find_moved(numbers))


def _read_number(line: bytes) -> int:
    if not line.endswith(b"\n"):
        raise MalformedLine("it has no line end")
    check_seal(line[:-1])
    stated = _NUMBER.match(line)
    if stated is None or (number := int(stated[1])) == _NONE:
        raise MalformedLine("it has no number")
    return number


def _find_moved(numbers: Sequence[int]) -> dict[int, int]:
    """Return the fewest lines without which all others are in order."""
    whole = [number for number in numbers if number != _NONE]
    if all(one < other for one, other in pairwise(whole)):
        return {}
    kept = _longest_increasing(numbers)
    # Of several such choices, prefer lines whose position equals their number.
    fixed = {index for index, number in enumerate(numbers) if number == index + 1}
    if len(fixed) >= len(kept):
        kept = fixed
    return {
        at: number for at, number in enumerate(numbers, 1) if number != _NONE and at - 1 not in kept
    }


def _longest_increasing(numbers: Sequence[int]) -> set[int]:
    """Return the indexes of a longest increasing subsequence (patience sorting)."""
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
