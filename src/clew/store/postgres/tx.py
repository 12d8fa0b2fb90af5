"""Transaction on PostgreSQL."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, LiteralString, TypeVar

import psycopg

from clew.clock import to_millis
from clew.errors import StoreError
from clew.store.contract import Tx
from clew.store.postgres.errors import translate_error
from clew.store.postgres.macros import Statement, expand_macros
from clew.store.postgres.search import PostgresSearchIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.clock import Clock
    from clew.store.contract import Row, Value
    from clew.store.postgres.dsn import Cursor
    from clew.store.postgres.worker_connection import WorkerConnection

T = TypeVar("T")

CHANNEL = "clew"
#: The payload that means "anything may have changed".
EVERYTHING = ""
_PAYLOAD_BYTES = 7999

BEGIN_WRITE = b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
BEGIN_READ = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Not ``now()``, which is the time of BEGIN: after waiting for a lock that would be earlier than
# the time of the transaction that held it.
_NOW = Statement(b"SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint", script=False)
# Only looks: trying to take the lock could make a starting owner fail.
_ALIVE = Statement(
    b"SELECT EXISTS (SELECT FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
    b" AND granted AND classid = CAST($1 AS oid) AND objid = CAST($2 AS oid) AND database ="
    b" (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))",
    script=False,
)
#: Makes the commit wait for the disk and for a synchronous stand-by, even if nothing else is
#: written: a transaction id alone does not. Fails on a stand-by.
FORCE_DURABLE: LiteralString = "SELECT pg_logical_emit_message(true, 'clew', '')"
_NOTIFY = b"SELECT pg_notify($1, topic) FROM unnest(CAST($2 AS text[])) AS topic"


class TransactionFailed(Exception):
    """Failure below the job: nothing of it is stored, unless it failed in COMMIT."""

    def __init__(
        self,
        error: psycopg.Error,
        *,
        committing: bool = False,
        raised: BaseException | None = None,
    ) -> None:
        """Store the driver's error; ``raised`` is the exception that the job made of it."""
        super().__init__(str(error))
        self.error, self.committing, self.raised = error, committing, raised


def advisory_lock_key(owner: str) -> int:
    """
    Return the advisory lock key of an owner: 64 bits, unsigned.

    Owners are random, so two that share a key are as unlikely as 64 bits allow: with 10,000
    owners alive at once about 1 in 370 billion.
    """
    return int.from_bytes(hashlib.sha256(f"clew.owner:{owner}".encode()).digest()[:8], "big")


class PostgresTx(Tx):
    """
    ``Tx`` on one connection.

    BEGIN is sent with the first statement. A failed statement voids the transaction, since
    PostgreSQL rejects everything after it: each later statement raises the same error, even
    if the job caught the first one.
    """

    dialect = "postgres"

    def __init__(self, link: WorkerConnection, begin: bytes, clock: Clock | None) -> None:
        self._link, self._begin, self._clock = link, begin, clock
        self._begun = False
        self._now: int | None = None
        self._topics: dict[str, None] = {}
        #: The first error of the driver.
        self.failure: psycopg.Error | None = None

    @property
    def now(self) -> int:
        if self._now is None:
            if self._clock is None:
                self._now = int(self._fetch_rows(_NOW, ())[0][0])
            else:
                self._now = to_millis(self._clock.now())
        return self._now

    @property
    def search_index(self) -> PostgresSearchIndex:
        return PostgresSearchIndex(self)

    @property
    def topics(self) -> frozenset[str]:
        """Return the topics that the job notified."""
        return frozenset(self._topics)

    def execute(self, sql: LiteralString, *args: Value) -> int:
        return max(self._execute_statement(expand_macros(sql), args).rowcount, 0)

    def fetch_one(self, sql: LiteralString, *args: Value) -> Row | None:
        cursor = self._execute_statement(expand_macros(sql), args)
        return cursor.fetchone() if cursor.description else None

    def fetch_all(self, sql: LiteralString, *args: Value) -> list[Row]:
        return self._fetch_rows(expand_macros(sql), args)

    def run_nested(self, job: Callable[[Tx], T]) -> T:
        self._run_control("SAVEPOINT nested")
        try:
            result = job(self)
        except BaseException:
            self.failure = None
            self._run_control("ROLLBACK TO SAVEPOINT nested")
            raise
        self._run_control("RELEASE SAVEPOINT nested")
        return result

    def _run_control(self, statement: LiteralString) -> None:
        self._execute_statement(Statement(sql=statement.encode(), script=False), ())

    def is_alive(self, owner: str) -> bool:
        high, low = divmod(advisory_lock_key(owner), 1 << 32)
        return bool(self._fetch_rows(_ALIVE, (high, low))[0][0]) or self._link.is_liveness_uncertain

    def notify(self, topic: str) -> None:
        fits = len(topic.encode()) <= _PAYLOAD_BYTES and "\0" not in topic
        self._topics[topic if fits else EVERYTHING] = None

    def commit(self) -> None:
        """Commit; raise ``TransactionFailed`` if that failed or its result was lost."""
        if not self._begun and not self._topics:
            return
        try:
            tag = self._commit_and_notify() if self._topics else self._commit_only()
        except psycopg.Error as error:
            raise TransactionFailed(error, committing=True) from error
        if tag != "COMMIT":
            raise StoreError(f"the database answered {tag} to COMMIT: nothing was stored")

    def _commit_only(self) -> str | None:
        return self._link.cursor.execute(b"COMMIT", prepare=False).statusmessage

    def _commit_and_notify(self) -> str | None:
        connection, cursor = self._link.connection, self._link.cursor
        with connection.pipeline():
            if not self._begun:
                connection.execute(self._begin)
            # NOTIFY takes a server-wide lock at COMMIT: only if there are topics.
            cursor.execute(_NOTIFY, (CHANNEL, list(self._topics)))
            done = connection.execute(b"COMMIT", prepare=False)
        return done.statusmessage

    def _fetch_rows(self, statement: Statement, args: Sequence[object]) -> list[Row]:
        cursor = self._execute_statement(statement, args)
        return cursor.fetchall() if cursor.description else []

    def _execute_statement(self, statement: Statement, args: Sequence[object]) -> Cursor:
        if self.failure is not None:
            raise translate_error(self.failure) from self.failure
        try:
            if statement.script and not args:
                return self._execute_script(statement)
            if self._begun:
                return self._link.cursor.execute(statement.sql, args)
            return self._execute_first(statement, args)
        except psycopg.Error as error:
            self.failure = error
            raise translate_error(error) from error
        except (UnicodeError, OverflowError) as error:
            raise StoreError(f"PostgreSQL cannot store a value: {error}") from error

    def _execute_script(self, statement: Statement) -> Cursor:
        # Several statements in one text can neither be prepared nor pipelined.
        cursor = self._link.cursor
        if not self._begun:
            cursor.execute(self._begin)
            self._begun = True
        return cursor.execute(statement.sql, prepare=False)

    def _execute_first(self, statement: Statement, args: Sequence[object]) -> Cursor:
        # BEGIN, the statement and the time after it in one round trip: the first statement is the
        # one that waits for a lock. Readers seldom need the time.
        connection, cursor = self._link.connection, self._link.cursor
        asked = None
        self._begun = True
        with connection.pipeline():
            connection.execute(self._begin)
            cursor.execute(statement.sql, args)
            if self._clock is None and self._begin is BEGIN_WRITE:
                asked = connection.execute(_NOW.sql)
        if asked is not None:
            self._now = int(asked.fetchall()[0][0])
        return cursor
