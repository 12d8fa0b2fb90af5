"""Target of a copy: its progress is stored with the rows themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, LiteralString, cast

from clew.store.copying.batches import insert_rows
from clew.store.copying.tables import Table, list_tables, set_sequences, sql_name

if TYPE_CHECKING:
    from clew.store.contract import Row, Tx

_TABLES: tuple[LiteralString, ...] = (
    "CREATE TABLE IF NOT EXISTS copy_source (one BIGINT PRIMARY KEY, source TEXT NOT NULL)",
    "CREATE TABLE copy_progress (name TEXT PRIMARY KEY, after TEXT NOT NULL)",
    """
    CREATE TABLE copy_constraint (
        name TEXT PRIMARY KEY, on_table TEXT NOT NULL, definition TEXT NOT NULL
    )
    """,
)
_FOREIGN_KEYS: LiteralString = """
    SELECT c.relname, k.conname, pg_get_constraintdef(k.oid)
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
    WHERE k.contype = 'f' AND k.connamespace = current_schema()::regnamespace
"""


def begin_fill(t: Tx, source: str) -> None:
    """
    Prepare a new store for the rows of ``source``, in any order.

    Until ``finish_fill`` it cannot be used for anything else.
    """
    for sql in _TABLES:
        t.execute(sql)
    # Migrations may have inserted rows: the source has their current state.
    for table in list_tables(t):
        t.execute(f"DELETE FROM {table.name}")
    t.execute("INSERT INTO copy_source (one, source) VALUES (1, $1)", source)
    if t.dialect == "postgres":
        _drop_foreign_keys(t)


def read_source(t: Tx) -> str | None:
    """Return the source of an unfinished copy; ``None`` if this is a complete store."""
    t.execute(_TABLES[0])
    return t.fetch_value("SELECT source FROM copy_source")


def _drop_foreign_keys(t: Tx) -> None:
    # A row may be inserted before the one that it references, in another transaction.
    for table, name, definition in t.fetch_all(_FOREIGN_KEYS):
        t.execute(
            "INSERT INTO copy_constraint (on_table, name, definition) VALUES ($1, $2, $3)",
            table,
            name,
            definition,
        )
        t.execute(f"ALTER TABLE {sql_name(table)} DROP CONSTRAINT {sql_name(name)}")


def read_progress(t: Tx) -> dict[str, Row]:
    """Return the key of the last row that each table has."""
    found = t.fetch_all("SELECT name, after FROM copy_progress")
    return {name: tuple(map(_from_json, json.loads(after))) for name, after in found}


def add_batch(t: Tx, table: Table, rows: list[Row]) -> None:
    """Add a batch of rows and store its position."""
    insert_rows(t, table, rows)
    t.execute(
        """
        INSERT INTO copy_progress (name, after) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET after = excluded.after
        """,
        table.name,
        json.dumps([_to_json(value) for value in table.key_values(rows[-1])]),
    )


def finish_fill(t: Tx, numbers: dict[str, int]) -> None:
    """
    Make the filled target a usable store.

    :raises ConstraintViolated: if a row references one that is missing
    """
    for table, name, definition in t.fetch_all(
        "SELECT on_table, name, definition FROM copy_constraint"
    ):
        t.execute(
            f"ALTER TABLE {sql_name(table)} ADD CONSTRAINT {sql_name(name)} "
            f"{_trusted_sql(definition)}"
        )
    set_sequences(t, numbers)
    for table in ("copy_source", "copy_progress", "copy_constraint"):
        t.execute(f"DROP TABLE {sql_name(table)}")


def _trusted_sql(told: str) -> LiteralString:
    # Written by the database, about one of our constraints.
    return cast("LiteralString", told)


def _to_json(value: str | float | bytes | None) -> object:
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def _from_json(value: object) -> object:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value  # pyright: ignore[reportUnknownArgumentType]
