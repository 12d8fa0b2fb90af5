"""Whether the pages of the file hang together."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, LiteralString, cast

from clew.errors import StoreDamaged, StoreUnavailable
from clew.store.sqlite.handle import SqliteTx

if TYPE_CHECKING:
    from clew.store.contract import Tx

#: Tells a few complaints at most.
_CHECK: LiteralString = "PRAGMA quick_check(5)"
_FULL_CHECK: LiteralString = "PRAGMA integrity_check(100000)"
_REFERENCES: LiteralString = """
    SELECT DISTINCT "table", parent FROM pragma_foreign_key_check ORDER BY 1, 2
"""
#: The tables of the search index, and of damaged ones that were put aside.
_SEARCH = re.compile(r"\bsearch_(?:index|damaged)")
_TREE = re.compile(r"^Tree (\d+)")
#: Lost room, as damaged indexes that were put aside leave it: nothing stored is touched by it.
_UNUSED = re.compile(r"^Page \d+: never used")
_ROOTS: LiteralString = "SELECT rootpage, tbl_name FROM sqlite_schema WHERE rootpage > 0"
_TABLES: LiteralString = """
    SELECT name FROM sqlite_schema
    WHERE type = 'table' AND name NOT LIKE 'search\\_%' ESCAPE '\\' OR name = 'search_state'
"""
#: What the rows say, not the pages.
_CONSTRAINT = re.compile(r"^(?:CHECK constraint failed in|NULL value in) (\w+)")


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Damage:
    """What is wrong with the pages of a file."""

    #: Where the entries and all that belongs to them are.
    data: tuple[str, ...] = ()
    #: In the search index only, which is made anew from the entries.
    search: tuple[str, ...] = ()
    #: Rows that a constraint forbids, by their table.
    rows: tuple[tuple[str, str], ...] = ()


def integrity(t: Tx) -> Damage:
    """All that SQLite finds wrong with the file: pages, indexes, constraints."""
    try:
        return _sorted(t, _lines(t, _FULL_CHECK))
    except StoreDamaged as error:
        # The search index can be such that nothing more is told: it has to be left out then.
        return _table_by_table(t, str(error))


def _table_by_table(t: Tx, told: str) -> Damage:
    data: list[str] = []
    rows: list[tuple[str, str]] = []
    try:
        names = [row[0] for row in t.all(_TABLES)]
    except StoreDamaged:
        return Damage(data=(told,))
    for name in names:
        try:
            damage = _sorted(t, _lines(t, cast("LiteralString", f"PRAGMA integrity_check({name})")))
        except StoreDamaged as error:
            damage = Damage(data=(f"table {name}: {error}",))
        data += damage.data
        rows += damage.rows
    return Damage(data=tuple(data), search=() if data else (told,), rows=tuple(rows))


def _lines(t: Tx, sql: LiteralString) -> list[str]:
    return [line for row in t.all(sql) for line in str(row[0]).splitlines()]


def _sorted(t: Tx, lines: list[str]) -> Damage:
    roots = {row[0]: row[1] for row in t.all(_ROOTS)}
    data: list[str] = []
    search: list[str] = []
    rows: list[tuple[str, str]] = []
    for line in lines:
        if line == "ok" or line.startswith("***") or _UNUSED.match(line):
            continue
        if constraint := _CONSTRAINT.match(line):
            rows.append((constraint[1], line))
        elif _is_of_search(line, roots):
            search.append(line)
        else:
            data.append(line)
    return Damage(data=tuple(data), search=tuple(search), rows=tuple(rows))


def _is_of_search(line: str, roots: dict[int, str]) -> bool:
    tree = _TREE.match(line)
    return bool(_SEARCH.search(roots.get(int(tree[1]), "") if tree else line))


def dangling(t: Tx) -> list[str]:
    """What refers to rows that are not there, where foreign keys were not enforced."""
    return [f"rows of {table} name what is not in {parent}" for table, parent in t.all(_REFERENCES)]
