"""A store that is built in a schema of its own, and moves to where the store is looked for."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, LiteralString, cast

import psycopg

from clew.errors import StoreInUse, StoreUnavailable, StoreUnusable
from clew.store.incoming import Incoming
from clew.store.migrate import applied
from clew.store.postgres.address import Address
from clew.store.postgres.direct import PostgresDirect
from clew.store.postgres.errors import translate
from clew.store.postgres.tx import lock_key
from clew.store.transactions.holders import check_replaceable

if TYPE_CHECKING:
    from clew.store.contract import Tx

SCHEMA: LiteralString = "clew_incoming"
_BUILDING = b"SELECT pg_try_advisory_lock($1)"
_BUILT = b"SELECT pg_advisory_unlock_all()"
_MAY_CREATE: LiteralString = "SELECT has_database_privilege(current_database(), 'CREATE')"
# Statements that move the tables of a schema, with all that belongs to them, and the functions of
# their triggers.
_MOVES: LiteralString = """
    SELECT format('ALTER TABLE %I.%I SET SCHEMA %I', n.nspname, c.relname, CAST($2 AS text))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relkind = 'r'
    UNION ALL
    SELECT DISTINCT format('ALTER FUNCTION %I.%I() SET SCHEMA %I', n.nspname, p.proname,
                           CAST($2 AS text))
    FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid JOIN pg_proc p ON p.oid = g.tgfoid
    JOIN pg_namespace n ON n.oid = c.relnamespace AND n.oid = p.pronamespace
    WHERE n.nspname = $1 AND NOT g.tgisinternal
"""


class PostgresIncoming(Incoming):
    """The schema ``clew_incoming``, whose tables become those of the store."""

    def __init__(self, url: str) -> None:
        """
        Begin, or go on with what is there.

        :raises StoreInUse: while another process builds there
        :raises StoreUnusable: if there can be no store
        """
        self._lock = _locked(url)
        try:
            self._place = PostgresDirect(url)
            self.name = self._place.name
            self._place.write(_make_schema)
            self._built = PostgresDirect(url, schema=SCHEMA)
        except BaseException:
            _unlock(self._lock)
            raise

    @property
    def direct(self) -> PostgresDirect:
        return self._built

    def check(self, *, replace: bool) -> None:
        self._place.read(_check, self._place.name, replace=replace)

    def clear(self) -> None:
        self._place.write(_drop, SCHEMA)
        self._place.write(_make_schema)

    def publish(self, *, replace: bool) -> str | None:
        self._built.close()
        moment = f"{time.strftime('%Y%m%d_%H%M%S')}_{time.time_ns() // 1_000_000 % 1000:03}"
        aside = cast("LiteralString", f"clew_before_{moment}")
        kept = self._place.write(_swap, aside, self._place.name, replace=replace)
        return f"{self._place.name}, schema {aside}" if kept else None

    def close(self) -> None:
        self._built.close()
        self._place.close()
        _unlock(self._lock)


def _locked(url: str) -> psycopg.Connection[tuple[object, ...]]:
    address = Address(url)
    try:
        connection = address.connect()
        key = lock_key(SCHEMA)
        found = connection.execute(_BUILDING, (key - (1 << 64) if key >> 63 else key,)).fetchone()
    except psycopg.Error as error:
        raise StoreUnavailable(f"PostgreSQL at {address.name}: {translate(error)}") from error
    if found != (True,):
        connection.close()
        raise StoreInUse(f"another process is filling {address.name}: wait for its end")
    return connection


def _unlock(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    # The server notices a closed connection a little later: who tries again at once must not wait.
    with suppress(psycopg.Error):
        connection.execute(_BUILT)
    connection.close()


def _make_schema(t: Tx) -> None:
    row = t.one(_MAY_CREATE)
    if row is None or not row[0]:
        raise StoreUnusable(
            "this user may not create a schema in the database, which it takes to fill it: "
            "GRANT CREATE ON DATABASE to it"
        )
    t.run(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")


def _drop(t: Tx, schema: LiteralString) -> None:
    t.run(f"DROP SCHEMA {schema} CASCADE")


def _check(t: Tx, name: str, *, replace: bool) -> bool:
    if applied(t, "postgres") is None:
        return True
    return check_replaceable(t, "postgres", name, replace=replace)


def _swap(t: Tx, aside: LiteralString, name: str, *, replace: bool) -> bool:
    """Put the tables in place; whether there were others that are worth keeping."""
    row = t.one("SELECT current_schema()")
    assert row is not None
    there = applied(t, "postgres") is not None
    if there:
        # Who wants to begin to work waits, and finds the new tables.
        t.run("LOCK TABLE owner, conversation IN ACCESS EXCLUSIVE MODE")
    empty = _check(t, name, replace=replace)
    if there:
        t.run(f"CREATE SCHEMA {aside}")
        _move(t, row[0], aside)
    if there and empty:
        _drop(t, aside)
    _move(t, SCHEMA, row[0])
    _drop(t, SCHEMA)
    return not empty


def _move(t: Tx, old: str, new: str) -> None:
    for (statement,) in t.all(_MOVES, old, new):
        t.run(cast("LiteralString", statement))
