"""Tables that make up a store, read from its database."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, LiteralString, cast

from clew.record import Record

if TYPE_CHECKING:
    from clew.store.contract import Dialect, Row, Tx

# Each column with its table, its name and its position in the key, from 1 (indkey counts from 0).
_COLUMNS: dict[Dialect, LiteralString] = {
    "sqlite": """
        SELECT m.name, c.name, c.pk FROM sqlite_schema m JOIN pragma_table_info(m.name) c
        WHERE m.type = 'table' ORDER BY m.name, c.cid
    """,
    "postgres": """
        SELECT c.relname, a.attname,
               COALESCE(array_position(i.indkey::smallint[], a.attnum), -1) + 1
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
          AND a.attnum > 0 AND NOT a.attisdropped
        ORDER BY c.relname, a.attnum
    """,
}
_SEQUENCES: dict[Dialect, LiteralString] = {
    "sqlite": """
        SELECT name, seq FROM sqlite_sequence WHERE name IN (SELECT name FROM sqlite_schema)
    """,
    "postgres": """
        SELECT c.relname, s.last_value FROM pg_depend d
        JOIN pg_class q ON q.oid = d.objid AND q.relkind = 'S'
        JOIN pg_class c ON c.oid = d.refobjid
        JOIN pg_sequences s ON s.schemaname = current_schema() AND s.sequencename = q.relname
        WHERE d.deptype = 'i' AND c.relnamespace = current_schema()::regnamespace
          AND s.last_value IS NOT NULL
    """,
}
# Rebuilt from the other tables, or specific to this one store.
_DERIVED = re.compile(r"search_\w+|copy_\w+|sqlite_\w+|migration")
_NAME = re.compile(r"[a-z_][a-z0-9_]*")


class Table(Record):
    name: LiteralString
    columns: tuple[LiteralString, ...]
    #: The primary key, which is also the order of reading.
    key: tuple[LiteralString, ...]

    def key_values(self, row: Row) -> Row:
        """Return the key of a row that has all columns."""
        return tuple(row[self.columns.index(name)] for name in self.key)


def list_tables(t: Tx) -> list[Table]:
    """Return every table whose rows cannot be rebuilt, by name."""
    columns: dict[str, dict[str, int]] = {}
    for table, column, position in t.fetch_all(_COLUMNS[t.dialect]):
        if not _DERIVED.fullmatch(table):
            columns.setdefault(table, {})[column] = position
    return [_build_table(name, found) for name, found in columns.items()]


def _build_table(name: str, columns: dict[str, int]) -> Table:
    key = sorted((position, column) for column, position in columns.items() if position)
    return Table(
        name=sql_name(name),
        # Sorted by name: the order of migrated columns may differ between the databases.
        columns=tuple(sql_name(column) for column in sorted(columns)),
        key=tuple(sql_name(column) for _, column in key),
    )


def sql_name(name: str) -> LiteralString:
    """Return an identifier read from the database, validated for use in SQL."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of ours")
    return cast("LiteralString", name)


def count_table_rows(t: Tx) -> dict[str, int]:
    """Return the number of rows of each table."""
    return {
        table.name: t.fetch_value(f"SELECT count(*) FROM {table.name}") for table in list_tables(t)
    }


def lock_tables(t: Tx) -> None:
    """Block all other writers until the end of this transaction, which itself may write."""
    if t.dialect == "postgres":
        for table in list_tables(t):
            t.execute(f"LOCK TABLE {table.name} IN SHARE MODE")


def read_sequences(t: Tx) -> dict[str, int]:
    """Return the highest number that each numbered table has ever assigned."""
    return t.fetch_map(_SEQUENCES[t.dialect])


def set_sequences(t: Tx, given: dict[str, int]) -> None:
    """Make each table continue its numbering above these numbers."""
    for table, number in given.items():
        if t.dialect == "postgres":
            t.fetch_one(
                "SELECT setval(pg_get_serial_sequence(quote_ident($1), 'n'), $2)", table, number
            )
        else:
            t.execute("DELETE FROM sqlite_sequence WHERE name = $1", table)
            t.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ($1, $2)", table, number)
