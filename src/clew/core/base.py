"""Bases: what a session starts from, before anything is said in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """The messages ``first..last`` (both included) of the same conversation's log."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.last:
            raise ValueError(f"no range: {self.first}..{self.last}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Literal:
    """A message that is not in this log: a summary, a shortened result, what a branch brought."""

    format: str
    #: The message as JSON, in ``format``.
    message: str


BaseItem = Range | Literal
Base = tuple[BaseItem, ...]

EMPTY: Base = ()


def joined(items: Iterable[BaseItem]) -> Base:
    """The same items with ranges that touch made one."""
    result: list[BaseItem] = []
    for item in items:
        last = result[-1] if result else None
        if isinstance(item, Range) and isinstance(last, Range) and last.last + 1 == item.first:
            result[-1] = Range(first=last.first, last=item.last)
        else:
            result.append(item)
    return tuple(result)


def extended(base: Base, *, opened_seq: int, last_seq: int) -> Base:
    """
    The whole context of a session as a base: its own base and what was said since it opened.

    ``opened_seq`` is the last seq before it opened, ``last_seq`` where the context ends.
    """
    if last_seq <= opened_seq:
        return joined(base)
    return joined([*base, Range(first=opened_seq + 1, last=last_seq)])
