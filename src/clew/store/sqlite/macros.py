"""Macros of the contract's SQL on SQLite."""

from __future__ import annotations

import functools

from clew.store.sql import rewrite_sql

_MACROS = {
    # A number is never reused, as on PostgreSQL: the search index and cursors rely on it.
    "ID": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "BYTES": "BLOB",
    "LOCK": "",
    "SHARE": "",
    "SKIP": "",
}


@functools.lru_cache(maxsize=2048)
def expand_macros(sql: str) -> str:
    """
    Return the statement for SQLite, whose ``?1`` binds a plain tuple; cached per text.

    :raises ValueError: for an unknown macro, or a statement that would end the transaction
    """
    return rewrite_sql(sql, _MACROS, parameter="?")
