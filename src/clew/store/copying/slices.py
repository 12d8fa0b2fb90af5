"""Rows of a table in the order of its key, in slices that fit into memory."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, LiteralString

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.store.contract import Row, Tx
    from clew.store.copying.tables import Table

#: Rows of a slice at most.
_MOST = 2000
#: About so many bytes make a slice; one row may have more.
_ENOUGH = 1_000_000
#: Values in one statement: few enough for both databases, and quickly read by them.
_PARAMETERS = 600


def slices(t: Tx, table: Table, after: Row | None = None) -> Iterator[list[Row]]:
    """All rows after a key, none of them twice, a slice at a time."""
    limit = 1
    while rows := _read(t, table, after, limit):
        yield rows
        if len(rows) < limit:
            return
        after = table.key_of(rows[-1])
        limit = _next_limit(limit, rows)


def _next_limit(limit: int, rows: list[Row]) -> int:
    # Attachments are a thousand times as large as anything else: we find out by going slowly.
    size = sum(len(value) for row in rows for value in row if isinstance(value, str | bytes))
    fitting = _ENOUGH * len(rows) // max(size, 1)
    return max(1, min(4 * limit, fitting, _MOST))


def _read(t: Tx, table: Table, after: Row | None, limit: int) -> list[Row]:
    columns, key = _list(table.columns), _list(table.key)
    sql: LiteralString = f"SELECT {columns} FROM {table.name}"
    if after is None:
        return t.all(f"{sql} ORDER BY {key} LIMIT $1", limit)
    places = _places(1, len(after))
    last = _places(len(after) + 1, 1)
    return t.all(f"{sql} WHERE ({key}) > ({places}) ORDER BY {key} LIMIT {last}", *after, limit)


def insert(t: Tx, table: Table, rows: list[Row]) -> None:
    """Add rows as they are."""
    several = max(1, _PARAMETERS // len(table.columns))
    whole = len(rows) - len(rows) % several
    for start in range(0, whole, several):
        values = [value for row in rows[start : start + several] for value in row]
        t.run(_insert_sql(table, several), *values)
    for row in rows[whole:]:
        t.run(_insert_sql(table, 1), *row)


@cache
def _insert_sql(table: Table, count: int) -> LiteralString:
    width = len(table.columns)
    first: LiteralString = f"INSERT INTO {table.name} ({_list(table.columns)}) VALUES "
    return first + _list([_row(1 + number * width, width) for number in range(count)])


def _row(first: int, count: int) -> LiteralString:
    return f"({_places(first, count)})"


def _list(names: Sequence[LiteralString]) -> LiteralString:
    return ", ".join(names)


def _places(first: int, count: int) -> LiteralString:
    # The digits of a number are no text that anybody could have written.
    return ", ".join(f"${number}" for number in range(first, first + count))  # pyright: ignore[reportReturnType]
