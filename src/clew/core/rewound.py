"""Rewound entries: in the log, but no longer in any context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class SeqSpan(Protocol):
    """Entries ``first..last``, both included, as the store or a client has them."""

    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...


class RewoundSpan(Record):
    """Entries ``first..last``, both included."""

    first: int
    last: int


class RewindMark(Record):
    """Rewind of a log that ended at ``at`` to the context after ``to``."""

    at: int
    to: int


def is_rewound(seq: int, spans: Iterable[SeqSpan]) -> bool:
    """Return whether an entry lies in one of the spans."""
    return any(span.first <= seq <= span.last for span in spans)


def find_rewound_spans(rewinds: Sequence[RewindMark]) -> tuple[RewoundSpan, ...]:
    """
    Return the entries that a conversation's rewinds, in order, have removed.

    A rewind to a point inside a removed span restores the entries that led there.
    """
    found: list[tuple[RewoundSpan, ...]] = []
    for number, one in enumerate(rewinds):
        before = next(
            (found[n] for n in range(number - 1, -1, -1) if rewinds[n].at < one.to),
            (),
        )
        stay = [
            RewoundSpan(first=span.first, last=min(span.last, one.to))
            for span in before
            if span.first <= one.to
        ]
        goes = [RewoundSpan(first=one.to + 1, last=one.at)] if one.to < one.at else []
        found.append(tuple(_merge_spans([*stay, *goes])))
    return found[-1] if found else ()


def _merge_spans(spans: Iterable[RewoundSpan]) -> list[RewoundSpan]:
    result: list[RewoundSpan] = []
    for span in spans:
        if result and span.first <= result[-1].last + 1:
            result[-1] = RewoundSpan(first=result[-1].first, last=max(result[-1].last, span.last))
        else:
            result.append(span)
    return result
