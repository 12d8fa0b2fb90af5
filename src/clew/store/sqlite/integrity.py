"""Integrity checks of the database file."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, LiteralString, cast

from clew.errors import StoreDamaged, StoreUnavailable
from clew.record import Record
from clew.store.sqlite.tx import require_sqlite

if TYPE_CHECKING:
    from clew.store.contract import Tx

#: Reports a few problems at most.
_CHECK: LiteralString = "PRAGMA quick_check(5)"
_FULL_CHECK: LiteralString = "PRAGMA integrity_check(100000)"
_REFERENCES: LiteralString = """
    SELECT DISTINCT "table", parent FROM pragma_foreign_key_check ORDER BY 1, 2
"""
#: The tables of the search index, and leftovers of damaged ones.
_SEARCH = re.compile(r"\bsearch_(?:index|damaged)")
_TREE = re.compile(r"^Tree (\d+)")
#: Leaked pages, as damaged indexes leave them: harmless to the stored data.
_UNUSED = re.compile(r"^Page \d+: never used")
_ROOTS: LiteralString = "SELECT rootpage, tbl_name FROM sqlite_schema WHERE rootpage > 0"
_TABLES: LiteralString = """
    SELECT name FROM sqlite_schema
    WHERE type = 'table' AND name NOT LIKE 'search\\_%' ESCAPE '\\' OR name = 'search_state'
"""
#: Problems of rows, not of pages.
_CONSTRAINT = re.compile(r"^(?:CHECK constraint failed in|NULL value in) (\w+)")


def quick_check(t: Tx, *, seconds: float) -> list[str] | None:
    """
    Return the problems that SQLite finds; ``None`` if none was found before the time-out.

    Uses the open connection: closing a descriptor of the file that was opened in any other
    way would drop the locks of this whole process.

    :raises StoreDamaged: if the file is too damaged to be checked
    """
    until = time.monotonic() + seconds
    found: list[str] = []
    try:
        with require_sqlite(t).interrupt_when(lambda: time.monotonic() > until):
            found = t.fetch_column(_CHECK)
    except StoreUnavailable:
        if time.monotonic() <= until:
            raise
        return None
    return [] if found == ["ok"] else found


class DamageReport(Record):
    """Problems in the pages of a file."""

    #: In the tables of entries and everything that belongs to them.
    data: tuple[str, ...] = ()
    #: In the search index only, which is rebuilt from the entries.
    search: tuple[str, ...] = ()
    #: Rows that violate a constraint, as ``(table, problem)``.
    rows: tuple[tuple[str, str], ...] = ()


def check_integrity(t: Tx) -> DamageReport:
    """Return every problem that SQLite finds in the file: pages, indexes, constraints."""
    try:
        return _classify_lines(t, _fetch_lines(t, _FULL_CHECK))
    except StoreDamaged as error:
        # A damaged search index can hide everything else: check without it.
        return _check_tables(t, str(error))


def _check_tables(t: Tx, told: str) -> DamageReport:
    data: list[str] = []
    rows: list[tuple[str, str]] = []
    try:
        names = t.fetch_column(_TABLES)
    except StoreDamaged:
        return DamageReport(data=(told,))
    for name in names:
        try:
            damage = _classify_lines(
                t, _fetch_lines(t, cast("LiteralString", f"PRAGMA integrity_check({name})"))
            )
        except StoreDamaged as error:
            damage = DamageReport(data=(f"table {name}: {error}",))
        data += damage.data
        rows += damage.rows
    return DamageReport(data=tuple(data), search=() if data else (told,), rows=tuple(rows))


def _fetch_lines(t: Tx, sql: LiteralString) -> list[str]:
    return [line for lines in t.fetch_column(sql) for line in lines.splitlines()]


def _classify_lines(t: Tx, lines: list[str]) -> DamageReport:
    roots: dict[int, str] = t.fetch_map(_ROOTS)
    data: list[str] = []
    search: list[str] = []
    rows: list[tuple[str, str]] = []
    for line in lines:
        if line == "ok" or line.startswith("***") or _UNUSED.match(line):
            continue
        if constraint := _CONSTRAINT.match(line):
            rows.append((constraint[1], line))
        elif _is_search_damage(line, roots):
            search.append(line)
        else:
            data.append(line)
    return DamageReport(data=tuple(data), search=tuple(search), rows=tuple(rows))


def _is_search_damage(line: str, roots: dict[int, str]) -> bool:
    tree = _TREE.match(line)
    return bool(_SEARCH.search(roots.get(int(tree[1]), "") if tree else line))


def find_dangling_references(t: Tx) -> list[str]:
    """Return the references to missing rows, where foreign keys were not enforced."""
    return [
        f"rows of {table} name what is not in {parent}"
        for table, parent in t.fetch_all(_REFERENCES)
    ]
