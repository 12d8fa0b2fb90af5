"""The pages of the file: what is damaged below everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.store.checks.check import Check, Found
from clew.store.sqlite.integrity import integrity
from clew.store.sqlite.search import SqliteIndex

if TYPE_CHECKING:
    from clew.store.contract import Tx
    from clew.store.sqlite.integrity import Damage

#: Tables whose constraints are looked at by checks of their own.
_SEEN: frozenset[str] = frozenset(
    {"conversation", "session", "base_item", "lease", "turn", "inbox", "journal"}
    | {"approval", "delivery", "delivery_chunk", "idempotency"}
)

#: One damaged page can break a thousand things.
_TOLD = 20

COPY_FIRST = (
    "stop everything that uses the store, copy its files to another disk, and restore a backup; "
    "nothing is repaired in a file whose pages are damaged"
)


def look(t: Tx, again: Found | None = None) -> list[Found]:
    """On PostgreSQL the server itself looks after its pages, and an error tells of a bad one."""
    if not isinstance(t.index, SqliteIndex):
        return []
    return _told(integrity(t))


def _told(damage: Damage) -> list[Found]:
    lines = [*damage.data, *(line for table, line in damage.rows if table not in _SEEN)]
    return [found(line) for line in lines[:_TOLD]]


def found(detail: str) -> Found:
    """A page that cannot be trusted."""
    return Found(conversation=None, seq=None, subject="pages", sure=False, detail=detail)


PAGES = Check(
    name="pages",
    says="The pages of the database hang together, and its indexes fit its tables.",
    look=look,
    decide=COPY_FIRST,
)
