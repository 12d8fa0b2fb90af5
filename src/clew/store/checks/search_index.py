"""Search index: it contains every message that it should, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import SearchNotReady
from clew.store import search
from clew.store.checks.check import Check, Violation

if TYPE_CHECKING:
    from clew.store.contract import Tx


def _find_index_faults(t: Tx, again: Violation | None = None) -> list[Violation]:
    if again is not None:  # a rebuild is never wrong, and the check takes long
        return [again]
    if search.is_damaged(t):
        return [_index_violation("it has to be rebuilt, and search is not available until then")]
    try:
        return [_index_violation(fault) for fault in t.search_index.find_faults()]
    except SearchNotReady:
        return [_index_violation("it is damaged")]


def _index_violation(detail: str) -> Violation:
    return Violation(
        conversation=None,
        seq=None,
        subject="search_index",
        repairable=True,
        detail=f"the search index: {detail}",
    )


CHECKS: tuple[Check, ...] = (
    Check(
        name="search-index",
        description="The search index has each message that was put into it, and no other.",
        find=_find_index_faults,
        repair="rebuild the search index from the entries, in slices",
        repair_fn=lambda t, found: search.mark_damaged(t),
    ),
)
