"""Whether the pages of the file hang together, as far as that can be told in a given time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, LiteralString

from clew.errors import StoreUnavailable
from clew.store.sqlite.handle import SqliteTx

if TYPE_CHECKING:
    from clew.store.contract import Tx

#: Tells a few complaints at most.
_CHECK: LiteralString = "PRAGMA quick_check(5)"


def quick_check(t: Tx, *, seconds: float) -> list[str] | None:
    """
    What SQLite finds wrong; ``None`` if it found nothing in the given time, and did not finish.

    Through the connection that is open: closing a descriptor of the file that was opened in any
    other way would drop the locks of this whole process.

    :raises StoreDamaged: if it is so damaged that it cannot be walked through
    """
    if not isinstance(t, SqliteTx):
        raise TypeError("only a store on SQLite has a file to look at")
    until = time.monotonic() + seconds
    found: list[str] = []
    try:
        with t.interrupted(lambda: time.monotonic() > until):
            found = [str(row[0]) for row in t.all(_CHECK)]
    except StoreUnavailable:
        if time.monotonic() <= until:
            raise
        return None
    return [] if found == ["ok"] else found
