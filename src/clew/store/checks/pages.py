"""Pages of the database file: damage below everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.store.checks.check import Check, Violation
from clew.store.sqlite.integrity import check_integrity

if TYPE_CHECKING:
    from clew.store.contract import Tx

#: Tables whose constraints have checks of their own.
_CHECKED_ELSEWHERE: frozenset[str] = frozenset(
    {"conversation", "session", "base_item", "lease", "turn", "inbox", "journal"}
    | {"approval", "approval_grant", "delivery", "delivery_chunk", "idempotency"}
)

#: Problems that are reported: one damaged page can cause a thousand.
_MAX_REPORTED = 20

COPY_FIRST = (
    "stop everything that uses the store, copy its files to another disk, and restore a backup; "
    "nothing is repaired in a file whose pages are damaged"
)


def find_damaged_pages(t: Tx, again: Violation | None = None) -> list[Violation]:
    """Return the damage in the file; none on PostgreSQL, which checks its own pages."""
    if t.dialect != "sqlite":
        return []
    damage = check_integrity(t)
    lines = [
        *damage.data,
        *(line for table, line in damage.rows if table not in _CHECKED_ELSEWHERE),
    ]
    return [page_violation(line) for line in lines[:_MAX_REPORTED]]


def page_violation(detail: str) -> Violation:
    """Build the violation for a damaged page."""
    return Violation(conversation=None, seq=None, subject="pages", repairable=False, detail=detail)


PAGES = Check(
    name="pages",
    description="The pages of the database are consistent, and its indexes match its tables.",
    find=find_damaged_pages,
    manual_fix=COPY_FIRST,
)
