"""
The contract that every database fulfils.

A *job* is a synchronous function whose first argument is a transaction (``Tx``). What Clew does to
its store is a set of such functions, in ``clew.store.transactions``; each is one transaction. A
database runs them: ``await store.write(begin, conversation, owner=...)``. A job must not keep
``Tx`` beyond its return, must not wait for anything, and may be run again from the start after its
transaction was voided, so it has no effect but through ``Tx``.
"""

from __future__ import annotations

import abc
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    LiteralString,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from types import TracebackType

    from clew.store.index import SearchIndex

Value = str | int | float | bytes | None
Row = tuple[Any, ...]
T = TypeVar("T")
P = ParamSpec("P")


class Topics(frozenset[str]):
    """What changed, where a database can tell who changed it: ``here`` is what this process did."""

    here: frozenset[str] = frozenset()


class Tx(Protocol):
    """
    One open transaction.

    SQL is one text for both databases: parameters are ``$1``, ``$2``, …; JSON is TEXT, times are
    INTEGER milliseconds, ids are TEXT. These macros differ:

    ==========  =============================  ============================
    macro       SQLite                         PostgreSQL
    ==========  =============================  ============================
    ``@ID``     INTEGER PRIMARY KEY AUTO…      BIGINT GENERATED … PRIMARY KEY
    ``@BYTES``  BLOB                           BYTEA
    ``@LOCK``   (nothing: one writer)          FOR UPDATE
    ``@SHARE``  (nothing)                      FOR SHARE
    ``@SKIP``   (nothing)                      FOR UPDATE SKIP LOCKED
    ==========  =============================  ============================

    Errors of the driver arrive as ``clew.errors.StoreError`` and its kinds. After one the
    transaction may be void: a job may turn it into an error of its own, but not go on without it.
    """

    @property
    def now(self) -> int:
        """Milliseconds by the database host's clock; does not change within the transaction."""
        ...

    @property
    def index(self) -> SearchIndex:
        """The search index; only ``clew.store.search`` uses it."""
        ...

    def run(self, sql: LiteralString, *args: Value) -> int:
        """
        Execute one statement; the number of rows that it changed.

        Without arguments the text may be a script of several statements.
        """
        ...

    def one(self, sql: LiteralString, *args: Value) -> Row | None:
        """The first row, or ``None``."""
        ...

    def all(self, sql: LiteralString, *args: Value) -> list[Row]:
        """All rows."""
        ...

    def alive(self, owner: str) -> bool:
        """Whether the process that registered as ``owner`` still proves that it lives."""
        ...

    def wake(self, topic: str) -> None:
        """Tell the listeners of every process, after the commit, that ``topic`` changed."""
        ...


class Store(abc.ABC):
    """
    An open database.

    Many processes may open the same one. Entering opens nothing: ``open_store`` returns it open,
    and leaving the ``async with`` closes it.
    """

    @abc.abstractmethod
    async def write(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """
        Run a job in a transaction of its own; return once its commit is durable.

        What the job raises is raised here, and nothing that it wrote stays; other jobs that share
        the commit are not touched by it. Cancelling the caller does not stop a job that has begun;
        one that has not begun does not run.

        :raises StoreUnavailable: the outcome is that nothing was stored, or (connection lost in
            COMMIT) unknown: every job takes ids made by its caller, so running it again is safe
        :raises StoreFull: nothing of this job was stored
        """

    @abc.abstractmethod
    async def read(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """
        Run a job on a consistent snapshot that contains every commit acknowledged before the call.

        Never waits for a writer. A job that writes fails.
        """

    @abc.abstractmethod
    def changes(self) -> AsyncIterator[frozenset[str] | None]:
        """
        What others and we have changed since the last step: topics given to ``Tx.wake``.

        They are ``Topics`` where others may have woken some of them, else all are ours.
        ``None`` stands for "anything may have changed" and comes first. Topics are merged
        while nobody asks; none is lost. Each call is a listener of its own. It ends when the store
        is closed.
        """

    @abc.abstractmethod
    async def register(self, owner: str) -> None:
        """
        Prove that ``owner`` (this process) lives, from the return until ``aclose`` or death.

        A proof may get lost with its connection, and comes back by itself; called again, this
        returns once it stands.

        :raises StoreUnavailable: if it does not for a while
        """

    @abc.abstractmethod
    async def check(self) -> None:
        """Return if the store can be read and written now, else raise what says why not."""

    @abc.abstractmethod
    async def aclose(self) -> None:
        """Finish the jobs that were accepted, then close. Later jobs raise ``StoreUnavailable``."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
