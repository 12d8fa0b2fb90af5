"""The search index: it has every message that it should have, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import SearchNotReady
from clew.store import search
from clew.store.checks.check import Check, Found

if TYPE_CHECKING:
    from clew.store.contract import Tx


def _look(t: Tx, again: Found | None = None) -> list[Found]:
    if again is not None:  # making it anew is never wrong, and looking takes long
        return [again]
    if search.is_damaged(t):
        return [_found("it has to be made anew, and search refuses until then")]
    try:
        return [_found(fault) for fault in t.index.faults()]
    except SearchNotReady:
        return [_found("it is damaged")]


def _found(detail: str) -> Found:
    return Found(
        conversation=None,
        seq=None,
        subject="search_index",
        sure=True,
        detail=f"the search index: {detail}",
    )


CHECKS: tuple[Check, ...] = (
    Check(
        name="search-index",
        says="The search index has each message that was put into it, and no other.",
        look=_look,
        repair="make the search index anew from the entries, in slices",
        mend=lambda t, found: search.condemn(t),
    ),
)
