"""Rows of a table in the order of its key, in batches that fit into memory."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, LiteralString

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.store.contract import Row, Tx
    from clew.store.copying.tables import Table

#: Maximum number of rows in a batch.
_MAX_ROWS = 2000
#: Approximate size of a batch in bytes; a single row may be larger.
_TARGET_BYTES = 1_000_000
#: Parameters in one statement: few enough for both databases, and fast to parse.
_MAX_PARAMETERS = 600


def iter_batches(t: Tx, table: Table, after: Row | None = None) -> Iterator[list[Row]]:
    """Iterate over all rows after a key, a batch at a time, none of them twice."""
    limit = 1
    while rows := _read_batch(t, table, after, limit):
        yield rows
        if len(rows) < limit:
            return
        after = table.key_values(rows[-1])
        limit = _next_limit(limit, rows)


def _next_limit(limit: int, rows: list[Row]) -> int:
    # Attachments are a thousand times larger than anything else: grow the batches slowly.
    size = sum(len(value) for row in rows for value in row if isinstance(value, str | bytes))
    fitting = _TARGET_BYTES * len(rows) // max(size, 1)
    return max(1, min(4 * limit, fitting, _MAX_ROWS))


def _read_batch(t: Tx, table: Table, after: Row | None, limit: int) -> list[Row]:
    columns, key = _join_names(table.columns), _join_names(table.key)
    sql: LiteralString = f"SELECT {columns} FROM {table.name}"
    if after is None:
        return t.fetch_all(f"{sql} ORDER BY {key} LIMIT $1", limit)
    places = _placeholders(1, len(after))
    last = _placeholders(len(after) + 1, 1)
    return t.fetch_all(
        f"{sql} WHERE ({key}) > ({places}) ORDER BY {key} LIMIT {last}", *after, limit
    )


def insert_rows(t: Tx, table: Table, rows: list[Row]) -> None:
    """Insert rows unchanged."""
    several = max(1, _MAX_PARAMETERS // len(table.columns))
    whole = len(rows) - len(rows) % several
    for start in range(0, whole, several):
        values = [value for row in rows[start : start + several] for value in row]
        t.execute(_insert_sql(table, several), *values)
    for row in rows[whole:]:
        t.execute(_insert_sql(table, 1), *row)


@cache
def _insert_sql(table: Table, count: int) -> LiteralString:
    width = len(table.columns)
    first: LiteralString = f"INSERT INTO {table.name} ({_join_names(table.columns)}) VALUES "
    return first + _join_names(
        [_row_placeholders(1 + number * width, width) for number in range(count)]
    )


def _row_placeholders(first: int, count: int) -> LiteralString:
    return f"({_placeholders(first, count)})"


def _join_names(names: Sequence[LiteralString]) -> LiteralString:
    return ", ".join(names)


def _placeholders(first: int, count: int) -> LiteralString:
    # Only digits, so nothing can be injected.
    return ", ".join(f"${number}" for number in range(first, first + count))  # pyright: ignore[reportReturnType]
