"""Store that is built in a schema of its own and moved to the default schema."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, LiteralString, cast

import psycopg

from clew.errors import StoreInUse, StoreUnavailable, StoreUnusable
from clew.store.migrate import read_applied_migrations
from clew.store.postgres.dsn import Dsn
from clew.store.postgres.errors import translate_error
from clew.store.postgres.sync_store import PostgresSyncStore
from clew.store.postgres.tx import advisory_lock_key
from clew.store.staged_store import StagedStore
from clew.store.transactions.open_processes import check_replaceable

if TYPE_CHECKING:
    from clew.store.contract import Tx

STAGING_SCHEMA: LiteralString = "clew_incoming"
_TAKE_LOCK = b"SELECT pg_try_advisory_lock($1)"
_RELEASE_LOCKS = b"SELECT pg_advisory_unlock_all()"
_MAY_CREATE: LiteralString = "SELECT has_database_privilege(current_database(), 'CREATE')"
# Statements that move the tables of a schema, with their indexes and sequences, and the functions
# of their triggers.
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


class PostgresStagedStore(StagedStore):
    """Schema ``clew_incoming``, whose tables become those of the store."""

    def __init__(self, url: str) -> None:
        """
        Start a build, or resume an earlier one.

        :raises StoreInUse: while another process builds there
        :raises StoreUnusable: if no store can be there
        """
        self._lock = _acquire_lock(url)
        try:
            self._place = PostgresSyncStore(url)
            self.name = self._place.name
            self._place.write(_create_schema)
            self._built = PostgresSyncStore(url, schema=STAGING_SCHEMA)
        except BaseException:
            _release_lock(self._lock)
            raise

    @property
    def store(self) -> PostgresSyncStore:
        return self._built

    def check_publishable(self, *, replace: bool) -> None:
        self._place.read(_check_target, self._place.name, replace=replace)

    def clear(self) -> None:
        self._place.write(_drop_schema, STAGING_SCHEMA)
        self._place.write(_create_schema)

    def publish(self, *, replace: bool) -> str | None:
        self._built.close()
        moment = f"{time.strftime('%Y%m%d_%H%M%S')}_{time.time_ns() // 1_000_000 % 1000:03}"
        aside = cast("LiteralString", f"clew_before_{moment}")
        kept = self._place.write(_swap_schemas, aside, self._place.name, replace=replace)
        return f"{self._place.name}, schema {aside}" if kept else None

    def close(self) -> None:
        self._built.close()
        self._place.close()
        _release_lock(self._lock)


def _acquire_lock(url: str) -> psycopg.Connection[tuple[object, ...]]:
    address = Dsn(url)
    try:
        connection = address.connect()
        key = advisory_lock_key(STAGING_SCHEMA)
        found = connection.execute(_TAKE_LOCK, (key - (1 << 64) if key >> 63 else key,)).fetchone()
    except psycopg.Error as error:
        raise StoreUnavailable(f"PostgreSQL at {address.name}: {translate_error(error)}") from error
    if found != (True,):
        connection.close()
        raise StoreInUse(f"another process is filling {address.name}: wait for its end")
    return connection


def _release_lock(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    # The server notices a closed connection a little later: an immediate retry must not fail.
    with suppress(psycopg.Error):
        connection.execute(_RELEASE_LOCKS)
    connection.close()


def _create_schema(t: Tx) -> None:
    if not t.fetch_value(_MAY_CREATE):
        raise StoreUnusable(
            "this user may not create a schema in the database, which it takes to fill it: "
            "GRANT CREATE ON DATABASE to it"
        )
    t.execute(f"CREATE SCHEMA IF NOT EXISTS {STAGING_SCHEMA}")


def _drop_schema(t: Tx, schema: LiteralString) -> None:
    t.execute(f"DROP SCHEMA {schema} CASCADE")


def _check_target(t: Tx, name: str, *, replace: bool) -> bool:
    if read_applied_migrations(t) is None:
        return True
    return check_replaceable(t, name, replace=replace)


def _swap_schemas(t: Tx, aside: LiteralString, name: str, *, replace: bool) -> bool:
    """Publish the staged tables; return whether previous ones were worth keeping."""
    schema = t.fetch_value("SELECT current_schema()")
    there = read_applied_migrations(t) is not None
    if there:
        # A process that wants to start working waits, and then finds the new tables.
        t.execute("LOCK TABLE owner, conversation IN ACCESS EXCLUSIVE MODE")
    empty = _check_target(t, name, replace=replace)
    if there:
        t.execute(f"CREATE SCHEMA {aside}")
        _move_tables(t, schema, aside)
    if there and empty:
        _drop_schema(t, aside)
    _move_tables(t, STAGING_SCHEMA, schema)
    _drop_schema(t, STAGING_SCHEMA)
    return not empty


def _move_tables(t: Tx, old: str, new: str) -> None:
    for (statement,) in t.fetch_all(_MOVES, old, new):
        t.execute(cast("LiteralString", statement))
