"""One transaction on PostgreSQL."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, LiteralString

import psycopg

from clew.clock import to_millis
from clew.errors import StoreError
from clew.store.postgres.errors import translate
from clew.store.postgres.macros import Statement, expand
from clew.store.postgres.search import PostgresIndex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.clock import Clock
    from clew.store.contract import Row, Value
    from clew.store.postgres.address import Cursor
    from clew.store.postgres.link import Link

CHANNEL = "clew"
#: The payload that stands for "anything may have changed".
EVERYTHING = ""
_PAYLOAD_BYTES = 7999

WRITE = b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
READ = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Not ``now()``, which is the time of BEGIN: whoever waited for a lock since then would tell a time
# before that of the transaction that it waited for.
_NOW = Statement(b"SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint", script=False)
# Looks without taking: an attempt to take the lock could make a starting owner fail.
_ALIVE = Statement(
    b"SELECT EXISTS (SELECT FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
    b" AND granted AND classid = CAST($1 AS oid) AND objid = CAST($2 AS oid) AND database ="
    b" (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))",
    script=False,
)
#: Has the commit wait for the disk and for a synchronous stand-by, whatever else is written: a
#: transaction number alone does not. Fails on a stand-by.
DURABLE: LiteralString = "SELECT pg_logical_emit_message(true, 'clew', '')"
_NOTIFY = b"SELECT pg_notify($1, topic) FROM unnest(CAST($2 AS text[])) AS topic"


class Voided(Exception):
    """The transaction failed below the job: nothing of it stays, unless it failed in COMMIT."""

    def __init__(
        self,
        error: psycopg.Error,
        *,
        committing: bool = False,
        raised: BaseException | None = None,
    ) -> None:
        """``raised`` is what the job made of it."""
        super().__init__(str(error))
        self.error, self.committing, self.raised = error, committing, raised


def lock_key(owner: str) -> int:
    """
    Return the advisory lock that stands for an owner: 64 bits, unsigned.

    Owners are random, so two that share a key are as unlikely as 64 bits allow: with 10,000 owners
    alive at once about 1 in 370 billion.
    """
    return int.from_bytes(hashlib.sha256(f"clew.owner:{owner}".encode()).digest()[:8], "big")


class PgTx:
    """
    The handle that a job gets.

    BEGIN travels with the first statement. A statement that fails voids the transaction: PostgreSQL
    answers nothing more in it, so each later statement raises the same error, also when the job
    caught the first one.
    """

    def __init__(self, link: Link, begin: bytes, clock: Clock | None) -> None:
        self._link, self._begin, self._clock = link, begin, clock
        self._begun = False
        self._now: int | None = None
        self._topics: dict[str, None] = {}
        #: What the driver raised first.
        self.failure: psycopg.Error | None = None

    @property
    def now(self) -> int:
        if self._now is None:
            if self._clock is None:
                self._now = int(self._rows(_NOW, ())[0][0])
            else:
                self._now = to_millis(self._clock.now())
        return self._now

    @property
    def index(self) -> PostgresIndex:
        return PostgresIndex(self)

    @property
    def topics(self) -> frozenset[str]:
        """What the job woke."""
        return frozenset(self._topics)

    def run(self, sql: LiteralString, *args: Value) -> int:
        return max(self._execute(expand(sql), args).rowcount, 0)

    def one(self, sql: LiteralString, *args: Value) -> Row | None:
        cursor = self._execute(expand(sql), args)
        return cursor.fetchone() if cursor.description else None

    def all(self, sql: LiteralString, *args: Value) -> list[Row]:
        return self._rows(expand(sql), args)

    def alive(self, owner: str) -> bool:
        high, low = divmod(lock_key(owner), 1 << 32)
        return bool(self._rows(_ALIVE, (high, low))[0][0]) or self._link.in_doubt

    def wake(self, topic: str) -> None:
        fits = len(topic.encode()) <= _PAYLOAD_BYTES and "\0" not in topic
        self._topics[topic if fits else EVERYTHING] = None

    def commit(self) -> None:
        """Commit what the job did; raise ``Voided`` if that failed or if the answer was lost."""
        if not self._begun and not self._topics:
            return
        try:
            tag = self._commit_and_notify() if self._topics else self._commit()
        except psycopg.Error as error:
            raise Voided(error, committing=True) from error
        if tag != "COMMIT":
            raise StoreError(f"the database answered {tag} to COMMIT: nothing was stored")

    def _commit(self) -> str | None:
        return self._link.cursor.execute(b"COMMIT", prepare=False).statusmessage

    def _commit_and_notify(self) -> str | None:
        connection, cursor = self._link.connection, self._link.cursor
        with connection.pipeline():
            if not self._begun:
                connection.execute(self._begin)
            # NOTIFY takes a lock over the whole server at COMMIT: only where something was woken.
            cursor.execute(_NOTIFY, (CHANNEL, list(self._topics)))
            done = connection.execute(b"COMMIT", prepare=False)
        return done.statusmessage

    def _rows(self, statement: Statement, args: Sequence[object]) -> list[Row]:
        cursor = self._execute(statement, args)
        return cursor.fetchall() if cursor.description else []

    def _execute(self, statement: Statement, args: Sequence[object]) -> Cursor:
        if self.failure is not None:
            raise translate(self.failure) from self.failure
        try:
            if statement.script and not args:
                return self._script(statement)
            if self._begun:
                return self._link.cursor.execute(statement.sql, args)
            return self._first(statement, args)
        except psycopg.Error as error:
            self.failure = error
            raise translate(error) from error
        except (UnicodeError, OverflowError) as error:
            raise StoreError(f"PostgreSQL cannot store a value: {error}") from error

    def _script(self, statement: Statement) -> Cursor:
        # Several statements in one text can neither be prepared nor pipelined.
        cursor = self._link.cursor
        if not self._begun:
            cursor.execute(self._begin)
            self._begun = True
        return cursor.execute(statement.sql, prepare=False)

    def _first(self, statement: Statement, args: Sequence[object]) -> Cursor:
        # BEGIN, the statement and the time after it in one round trip: the first statement is the
        # one that waits for a lock. Readers seldom ask for the time.
        connection, cursor = self._link.connection, self._link.cursor
        asked = None
        self._begun = True
        with connection.pipeline():
            connection.execute(self._begin)
            cursor.execute(statement.sql, args)
            if self._clock is None and self._begin is WRITE:
                asked = connection.execute(_NOW.sql)
        if asked is not None:
            self._now = int(asked.fetchall()[0][0])
        return cursor
