"""Changing rows behind the back of a store, with every constraint of its schema out of the way."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import apsw
import psycopg

from clew.store.opening import sqlite_path
from clew.store.sqlite.driver import fetch_rows

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname FROM pg_constraint
    WHERE contype = 'c' AND connamespace = current_schema()::regnamespace
"""


def harm(url: str, home: Path, statements: Iterable[str]) -> None:
    """Run statements, in which ``@BYTES`` is the type of bytes, on a store that nobody uses."""
    path = sqlite_path(url, home=home)
    if path is not None:
        _harm_file(path, [sql.replace("@BYTES", "BLOB") for sql in statements])
    else:
        _harm_server(url, [sql.replace("@BYTES", "BYTEA") for sql in statements])


def _harm_file(path: Path, statements: list[str]) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        fetch_rows(connection, "PRAGMA foreign_keys = OFF")
        fetch_rows(connection, "PRAGMA ignore_check_constraints = ON")
        rules = fetch_rows(connection, "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        for name, _ in rules:
            fetch_rows(connection, f"DROP TRIGGER {name}")
        gone = [sql for sql in statements if sql.startswith("DROP TRIGGER")]
        for sql in statements:
            if sql not in gone:
                fetch_rows(connection, sql)
        for name, sql in rules:
            if f"DROP TRIGGER {name}" not in gone:
                fetch_rows(connection, sql)


def _harm_server(url: str, statements: list[str]) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for table, name in connection.execute(_CONSTRAINTS).fetchall():
            connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}".encode())
        connection.execute("SET session_replication_role = replica")
        for sql in statements:
            connection.execute(sql.encode())
