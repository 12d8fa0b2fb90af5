"""What was taken back: entries that are in the log, and that no context will hold any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """The entries ``first..last``, both included."""

    first: int
    last: int


@dataclass(frozen=True, kw_only=True, slots=True)
class WentBack:
    """A rewind: when the log ended in ``at``, the context became what it was after ``to``."""

    at: int
    to: int


def taken_back(rewinds: Sequence[WentBack]) -> tuple[Span, ...]:
    """
    The entries that the rewinds of a conversation, in their order, have taken out of it.

    Whoever goes to a point that was taken back has what led there again.
    """
    found: list[tuple[Span, ...]] = []
    for number, one in enumerate(rewinds):
        before = next(
            (found[n] for n in range(number - 1, -1, -1) if rewinds[n].at < one.to),
            (),
        )
        stay = [
            Span(first=span.first, last=min(span.last, one.to))
            for span in before
            if span.first <= one.to
        ]
        goes = [Span(first=one.to + 1, last=one.at)] if one.to < one.at else []
        found.append(tuple(_joined([*stay, *goes])))
    return found[-1] if found else ()


def _joined(spans: Iterable[Span]) -> list[Span]:
    result: list[Span] = []
    for span in spans:
        if result and span.first <= result[-1].last + 1:
            result[-1] = Span(first=result[-1].first, last=max(result[-1].last, span.last))
        else:
            result.append(span)
    return result
