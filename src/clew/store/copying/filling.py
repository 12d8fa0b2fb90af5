"""The store that is being filled: how far it is, kept with the rows themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, LiteralString, cast

from clew.store.copying.slices import insert
from clew.store.copying.tables import Table, set_numbers, sql_name, tables

if TYPE_CHECKING:
    from clew.store.contract import Row, Tx
    from clew.store.migrate import Dialect

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


def begin(t: Tx, dialect: Dialect, source: str) -> None:
    """
    Make a new store ready for the rows of ``source``, in any order.

    Until ``finish`` it can be used for nothing else.
    """
    for sql in _TABLES:
        t.run(sql)
    # Migrations may have put rows into it: those of the source are what they became.
    for table in tables(t, dialect):
        t.run(f"DELETE FROM {table.name}")
    t.run("INSERT INTO copy_source (one, source) VALUES (1, $1)", source)
    if dialect == "postgres":
        _drop_foreign_keys(t)


def source_of(t: Tx) -> str | None:
    """What a store is being filled with; ``None`` if it is a store."""
    t.run(_TABLES[0])
    row = t.one("SELECT source FROM copy_source")
    return None if row is None else row[0]


def _drop_foreign_keys(t: Tx) -> None:
    # A row may come before the one that it names, in another transaction.
    for table, name, definition in t.all(_FOREIGN_KEYS):
        t.run(
            "INSERT INTO copy_constraint (on_table, name, definition) VALUES ($1, $2, $3)",
            table,
            name,
            definition,
        )
        t.run(f"ALTER TABLE {sql_name(table)} DROP CONSTRAINT {sql_name(name)}")


def progress(t: Tx) -> dict[str, Row]:
    """The key of the last row that each table has."""
    found = t.all("SELECT name, after FROM copy_progress")
    return {name: tuple(map(_from_json, json.loads(after))) for name, after in found}


def add(t: Tx, table: Table, rows: list[Row]) -> None:
    """Add a slice."""
    insert(t, table, rows)
    t.run(
        """
        INSERT INTO copy_progress (name, after) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET after = excluded.after
        """,
        table.name,
        json.dumps([_to_json(value) for value in table.key_of(rows[-1])]),
    )


def finish(t: Tx, dialect: Dialect, numbers: dict[str, int]) -> None:
    """
    Make a store of what was filled.

    :raises ConstraintViolated: if a row names one that is not there
    """
    for table, name, definition in t.all("SELECT on_table, name, definition FROM copy_constraint"):
        t.run(f"ALTER TABLE {sql_name(table)} ADD CONSTRAINT {sql_name(name)} {_sql(definition)}")
    set_numbers(t, dialect, numbers)
    for table in ("copy_source", "copy_progress", "copy_constraint"):
        t.run(f"DROP TABLE {sql_name(table)}")


def _sql(told: str) -> LiteralString:
    # The database wrote it, about a constraint of ours.
    return cast("LiteralString", told)


def _to_json(value: str | float | bytes | None) -> object:
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def _from_json(value: object) -> object:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value  # pyright: ignore[reportUnknownArgumentType]
