"""Transaction handle passed to a job."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, LiteralString, TypeVar

import apsw

from clew.clock import Clock, to_millis
from clew.errors import StoreError, StoreUnavailable
from clew.record import Record
from clew.store.contract import Tx
from clew.store.sqlite.errors import translate_error
from clew.store.sqlite.macros import expand_macros
from clew.store.sqlite.search import SqliteSearchIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from clew.store.contract import Row, Value
    from clew.store.sqlite.driver import Cursor
    from clew.store.sqlite.liveness import SqliteLiveness

T = TypeVar("T")

#: Virtual machine steps between two checks for an interruption.
_PROGRESS_STEPS = 10_000


class JobContext(Record, kw_only=False):
    """Services that a job can use besides the database."""

    clock: Clock
    owners: SqliteLiveness

    def now_millis(self) -> int:
        """Return the clock's time, in milliseconds."""
        return to_millis(self.clock.now())


class SqliteTx(Tx):
    """
    ``Tx`` on one connection.

    ``execute`` without arguments also takes a script of several statements. Once SQLite has
    rolled the transaction back by itself, every further call raises: it would commit on its
    own.
    """

    dialect = "sqlite"
    __slots__ = ("_connection", "_cursor", "_now", "_surroundings", "failure", "topics")

    def __init__(
        self,
        connection: apsw.Connection,
        cursor: Cursor,
        surroundings: JobContext,
        now: int | None = None,
    ) -> None:
        """Store the connection; ``now`` is given where several jobs share the transaction."""
        self._connection = connection
        self._cursor = cursor
        self._surroundings = surroundings
        self._now = now
        #: Topics to notify after the commit.
        self.topics: set[str] = set()
        #: The error that made SQLite roll back the transaction.
        self.failure: StoreError | None = None

    @property
    def now(self) -> int:
        if self._now is None:
            self._now = self._surroundings.now_millis()
        return self._now

    @property
    def search_index(self) -> SqliteSearchIndex:
        return SqliteSearchIndex(self)

    def execute(self, sql: LiteralString, *args: Value) -> int:
        self._fetch_rows(sql, args)
        return self._connection.changes()

    def fetch_one(self, sql: LiteralString, *args: Value) -> Row | None:
        self._raise_if_void()
        try:
            return self._cursor.execute(expand_macros(sql), args).fetchone()
        except apsw.Error as error:
            raise self._record_error(error) from error

    def fetch_all(self, sql: LiteralString, *args: Value) -> list[Row]:
        return self._fetch_rows(sql, args)

    def run_nested(self, job: Callable[[Tx], T]) -> T:
        self._raise_if_void()
        self._run_control("SAVEPOINT nested")
        try:
            result = job(self)
        except BaseException:
            if self._connection.in_transaction:
                self._run_control("ROLLBACK TO nested")
                self._run_control("RELEASE nested")
            raise
        self._run_control("RELEASE nested")
        return result

    def _run_control(self, statement: str) -> None:
        try:
            self._cursor.execute(statement)
        except apsw.Error as error:
            raise self._record_error(error) from error

    def is_alive(self, owner: str) -> bool:
        return self._surroundings.owners.is_alive(owner)

    def notify(self, topic: str) -> None:
        self.topics.add(topic)

    @contextmanager
    def interrupt_when(self, when: Callable[[], bool]) -> Generator[None]:
        """Make statements in the block raise ``StoreUnavailable`` once ``when`` is true."""
        self._connection.set_progress_handler(when, _PROGRESS_STEPS)
        try:
            yield
        finally:
            self._connection.set_progress_handler(None)

    def backup_into(
        self, target: apsw.Connection, *, step: int, tell: Callable[[int, int], None]
    ) -> int:
        """
        Copy the snapshot page by page into an empty database; return its page count.

        ``tell`` is called after each ``step`` pages with the pages done and the total.
        """
        # The transaction pins the snapshot: otherwise a commit elsewhere restarts the copy.
        self.fetch_one("SELECT 1 FROM sqlite_schema")
        count = 0
        try:
            with target.backup("main", self._connection, "main") as copy:
                while not copy.done:
                    copy.step(step)
                    tell(copy.page_count - copy.remaining, copy.page_count)
                count = copy.page_count
        except apsw.Error as error:
            raise self._record_error(error) from error
        return count

    def _fetch_rows(self, sql: LiteralString, args: tuple[Value, ...]) -> list[Row]:
        self._raise_if_void()
        try:
            return self._cursor.execute(expand_macros(sql), args).fetchall()
        except apsw.Error as error:
            raise self._record_error(error) from error

    def _record_error(self, error: apsw.Error) -> StoreError:
        ours = translate_error(error, self._connection)
        if not self._connection.in_transaction:
            self.failure = ours
        return ours

    def _raise_if_void(self) -> None:
        if self.failure is not None:
            raise StoreUnavailable("the transaction was rolled back") from self.failure


def require_sqlite(t: Tx) -> SqliteTx:
    """
    Return a transaction as one on SQLite.

    :raises TypeError: if it is on another database
    """
    if not isinstance(t, SqliteTx):
        raise TypeError(f"this works on a store on SQLite only, not on {t.dialect}")
    return t
