"""
Contract that each database driver implements.

A *job* is a synchronous function whose first argument is a transaction (``Tx``). Everything
that Clew does to its store is such a function, in ``clew.store.transactions``, and each is
one transaction. A driver runs them: ``await store.write(begin, conversation, owner=...)``.
A job must not keep ``Tx`` after it returns, and must not block. It may run again from the
start after its transaction was rolled back, so ``Tx`` is its only side effect.
"""

from __future__ import annotations

import abc
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    LiteralString,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    cast,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from types import TracebackType

    from clew.store.search_index import SearchIndex

Dialect = Literal["sqlite", "postgres"]
Value = str | int | float | bytes | None
Row = tuple[Any, ...]
T = TypeVar("T")
P = ParamSpec("P")


class Topics(frozenset[str]):
    """Changed topics; ``here`` has those that this process changed, if the driver knows."""

    here: frozenset[str] = frozenset()


class Tx(Protocol):
    """
    Open transaction.

    SQL is one text for both databases: parameters are ``$1``, ``$2``, …; JSON is TEXT,
    times are INTEGER milliseconds, ids are TEXT. These macros differ:

    ==========  =============================  ============================
    macro       SQLite                         PostgreSQL
    ==========  =============================  ============================
    ``@ID``     INTEGER PRIMARY KEY AUTO…      BIGINT GENERATED … PRIMARY KEY
    ``@BYTES``  BLOB                           BYTEA
    ``@LOCK``   (nothing: one writer)          FOR UPDATE
    ``@SHARE``  (nothing)                      FOR SHARE
    ``@SKIP``   (nothing)                      FOR UPDATE SKIP LOCKED
    ==========  =============================  ============================

    Driver errors arrive as ``clew.errors.StoreError`` and its subclasses. After one the
    transaction may be void: a job may replace the error with one of its own, but must not
    continue.
    """

    #: The database that runs the transaction.
    dialect: Dialect

    @property
    def now(self) -> int:
        """Return the database host's time in milliseconds, constant within the transaction."""
        ...

    @property
    def search_index(self) -> SearchIndex:
        """Return the search index; only ``clew.store.search`` uses it."""
        ...

    def execute(self, sql: LiteralString, *args: Value) -> int:
        """
        Execute one statement and return the number of rows that it changed.

        Without arguments the text may be a script of several statements.
        """
        ...

    def fetch_one(self, sql: LiteralString, *args: Value) -> Row | None:
        """Return the first row, or ``None``."""
        ...

    def fetch_all(self, sql: LiteralString, *args: Value) -> list[Row]:
        """Return all rows."""
        ...

    def fetch_value(self, sql: LiteralString, *args: Value) -> Any:
        """Return the only column of the first row; ``None`` without a row."""
        row = self.fetch_one(sql, *args)
        return None if row is None else row[0]

    def fetch_column(self, sql: LiteralString, *args: Value) -> list[Any]:
        """Return the only column of all rows."""
        return [value for (value,) in self.fetch_all(sql, *args)]

    def fetch_map(self, sql: LiteralString, *args: Value) -> dict[Any, Any]:
        """Return all rows of two columns: the second by the first."""
        return dict(cast("list[tuple[Any, Any]]", self.fetch_all(sql, *args)))

    def exists(self, sql: LiteralString, *args: Value) -> bool:
        """Return true if there is a row."""
        return self.fetch_one(sql, *args) is not None

    @abc.abstractmethod
    def run_nested(self, job: Callable[[Tx], T]) -> T:
        """
        Run a part of the job in a savepoint: if it raises, only its own writes are undone.

        The transaction can go on after that, whatever failed.
        """
        ...

    def is_alive(self, owner: str) -> bool:
        """Return true if the process registered as ``owner`` still proves that it is alive."""
        ...

    def notify(self, topic: str) -> None:
        """Notify the listeners of every process, after the commit, that ``topic`` changed."""
        ...


class Store(abc.ABC):
    """
    Open database.

    Several processes may open the same one. ``open_store`` returns it open; leaving the
    ``async with`` block closes it.
    """

    @abc.abstractmethod
    async def write(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """
        Run a job in its own transaction; return its result once the commit is durable.

        An exception from the job is raised here, and none of its writes remain; other jobs
        in the same commit are unaffected. Cancelling the caller does not stop a job that
        has started; a job that has not started does not run.

        :raises StoreUnavailable: nothing was stored, or (connection lost in COMMIT) the
            outcome is unknown: every job takes ids made by its caller, so running it again
            is safe
        :raises StoreFull: nothing of this job was stored
        """

    @abc.abstractmethod
    async def read(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """
        Run a job on a snapshot that contains every commit acknowledged before the call.

        Never waits for a writer. A job that writes fails.
        """

    @abc.abstractmethod
    def watch_changes(self) -> AsyncIterator[frozenset[str] | None]:
        """
        Iterate over the topics passed to ``Tx.notify``, by any process.

        Each step yields the topics since the previous one, as a ``Topics`` where other
        processes may have notified some of its topics; otherwise all are from this process.
        ``None`` means that anything may have changed, and comes first. Topics are merged
        until the next step; none is lost. Each call is a separate listener. The iteration
        ends when the store is closed.
        """

    @abc.abstractmethod
    async def register_owner(self, owner: str) -> None:
        """
        Prove that ``owner`` (this process) is alive, until ``aclose`` or its death.

        A proof can be lost with its connection; it is restored automatically. Called again,
        this returns once the proof is in place.

        :raises StoreUnavailable: if that takes too long
        """

    @abc.abstractmethod
    async def check_available(self) -> None:
        """Return if the store can be read and written now; otherwise raise the reason."""

    @abc.abstractmethod
    async def aclose(self) -> None:
        """Finish the accepted jobs, then close; later jobs raise ``StoreUnavailable``."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
