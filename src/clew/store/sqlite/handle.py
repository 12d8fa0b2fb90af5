"""The transaction handle that a job gets."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, LiteralString

import apsw

from clew.clock import Clock, to_millis
from clew.errors import StoreError, StoreUnavailable
from clew.store.sqlite.dialect import expand
from clew.store.sqlite.failures import translated
from clew.store.sqlite.search import SqliteIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from clew.store.contract import Row, Value
    from clew.store.sqlite.driver import Cursor
    from clew.store.sqlite.owners import Owners

#: How many steps of SQLite's machine go by between two looks at whether to go on.
_STEPS = 10_000


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a job can ask for besides the database."""

    clock: Clock
    owners: Owners

    def now(self) -> int:
        """The clock's time, as ``Tx.now`` gives it."""
        return to_millis(self.clock.now())


class SqliteTx:
    """
    ``Tx`` on one connection.

    ``run`` without arguments also takes a script of several statements. After SQLite has rolled the
    transaction back by itself every further call raises: it would be committed on its own.
    """

    __slots__ = ("_connection", "_cursor", "_now", "_surroundings", "topics", "void")

    def __init__(
        self,
        connection: apsw.Connection,
        cursor: Cursor,
        surroundings: Surroundings,
        now: int | None = None,
    ) -> None:
        """``now`` is given where several jobs share the transaction, and so its time."""
        self._connection = connection
        self._cursor = cursor
        self._surroundings = surroundings
        self._now = now
        #: What the job wants to be told after its commit.
        self.topics: set[str] = set()
        #: The error that made SQLite end the transaction.
        self.void: StoreError | None = None

    @property
    def now(self) -> int:
        if self._now is None:
            self._now = self._surroundings.now()
        return self._now

    @property
    def index(self) -> SqliteIndex:
        return SqliteIndex(self)

    def run(self, sql: LiteralString, *args: Value) -> int:
        self._rows(sql, args)
        return self._connection.changes()

    def one(self, sql: LiteralString, *args: Value) -> Row | None:
        self._refuse_if_void()
        try:
            return self._cursor.execute(expand(sql), args).fetchone()
        except apsw.Error as error:
            raise self._noted(error) from error

    def all(self, sql: LiteralString, *args: Value) -> list[Row]:
        return self._rows(sql, args)

    def alive(self, owner: str) -> bool:
        return self._surroundings.owners.alive(owner)

    def wake(self, topic: str) -> None:
        self.topics.add(topic)

    @contextmanager
    def interrupted(self, when: Callable[[], bool]) -> Generator[None]:
        """Within the block a statement fails with ``StoreUnavailable`` once ``when`` is true."""
        self._connection.set_progress_handler(when, _STEPS)
        try:
            yield
        finally:
            self._connection.set_progress_handler(None)

    def copy_into(
        self, target: apsw.Connection, *, step: int, tell: Callable[[int, int], None]
    ) -> int:
        """
        Make an empty database a copy of the snapshot, page by page; how many it has.

        ``tell`` is called after each ``step`` pages with how many are done, of how many.
        """
        # The transaction keeps the snapshot: without it a commit of others would begin it anew.
        self.one("SELECT 1 FROM sqlite_schema")
        count = 0
        try:
            with target.backup("main", self._connection, "main") as copy:
                while not copy.done:
                    copy.step(step)
                    tell(copy.page_count - copy.remaining, copy.page_count)
                count = copy.page_count
        except apsw.Error as error:
            raise self._noted(error) from error
        return count

    def _rows(self, sql: LiteralString, args: tuple[Value, ...]) -> list[Row]:
        self._refuse_if_void()
        try:
            return self._cursor.execute(expand(sql), args).fetchall()
        except apsw.Error as error:
            raise self._noted(error) from error

    def _noted(self, error: apsw.Error) -> StoreError:
        ours = translated(error, self._connection)
        if not self._connection.in_transaction:
            self.void = ours
        return ours

    def _refuse_if_void(self) -> None:
        if self.void is not None:
            raise StoreUnavailable("the transaction was rolled back") from self.void
