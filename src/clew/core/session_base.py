"""Bases: the context that a session starts from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable


class EntryRange(Record):
    """Messages ``first..last`` (both included) of the same conversation's log."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.last:
            raise ValueError(f"no range: {self.first}..{self.last}")


class InlineMessage(Record):
    """Message outside this log: a summary, a shortened result, a branched message."""

    format: str
    #: The message as JSON, in ``format``.
    message: str


BaseItem = EntryRange | InlineMessage
Base = tuple[BaseItem, ...]

EMPTY: Base = ()


def merge_ranges(items: Iterable[BaseItem]) -> Base:
    """Return the same items with adjacent ranges merged."""
    result: list[BaseItem] = []
    for item in items:
        last = result[-1] if result else None
        if (
            isinstance(item, EntryRange)
            and isinstance(last, EntryRange)
            and last.last + 1 == item.first
        ):
            result[-1] = EntryRange(first=last.first, last=item.last)
        else:
            result.append(item)
    return tuple(result)


def extend_base(base: Base, *, opened_seq: int, last_seq: int) -> Base:
    """
    Return a session's whole context as a base: its own base and later messages.

    ``opened_seq`` is the last seq before it opened, ``last_seq`` the end of the context.
    """
    if last_seq <= opened_seq:
        return merge_ranges(base)
    return merge_ranges([*base, EntryRange(first=opened_seq + 1, last=last_seq)])
