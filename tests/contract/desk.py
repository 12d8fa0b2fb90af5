"""
Transactions run one by one, by hand: simulated owners in simulated time on a real database.

What a store adds (threads, group commit, retries) is left out, so that a test decides between which
two commits an owner dies, and how old a lease is.
"""

from __future__ import annotations

import abc
import copy
import shutil
from typing import TYPE_CHECKING, Concatenate, LiteralString, ParamSpec, TypeVar

import apsw

from clew.clock import SystemClock
from clew.store.contract import Tx
from clew.store.migrate import migrate_schema
from clew.store.postgres.dsn import Dsn
from clew.store.postgres.errors import translate_error as translate_postgres_error
from clew.store.postgres.tx import BEGIN_WRITE, PostgresTx, TransactionFailed
from clew.store.postgres.worker_connection import WorkerConnection
from clew.store.sqlite.driver import fetch_rows, new_cursor
from clew.store.sqlite.errors import translate_error
from clew.store.sqlite.liveness import SqliteLiveness
from clew.store.sqlite.opening import open_writer, prepare_file
from clew.store.sqlite.tx import JobContext, SqliteTx

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clew.store.contract import Row, Value
    from clew.store.search_index import SearchIndex

P = ParamSpec("P")
T = TypeVar("T")

#: Every table with rows of conversations, in an order in which all rows can be removed.
TABLES: tuple[LiteralString, ...] = (
    "delivery_chunk", "delivery", "approval", "journal", "approval_grant", "attachment", "blob",
    "usage", "inbox", "entry_redaction", "entry", "turn", "base_item", "compaction", "head",
    "route", "lease", "client", "session", "toolset", "resent", "pending_title", "dedupe",
    "tombstone", "lock", "conversation",
)  # fmt: skip

BEGINNING = 1_800_000_000_000


class World:
    """Values that the simulation decides: the time, and which owners live."""

    def __init__(self) -> None:
        self.now = BEGINNING
        self.alive: set[str] = set()


class SimTx(Tx):
    """A real transaction with the time and the living of a simulated world."""

    def __init__(self, real: Tx, world: World) -> None:
        self._real, self._world = real, world
        self.dialect = real.dialect

    @property
    def now(self) -> int:
        return self._world.now

    @property
    def search_index(self) -> SearchIndex:
        return self._real.search_index

    def execute(self, sql: LiteralString, *args: Value) -> int:
        return self._real.execute(sql, *args)

    def fetch_one(self, sql: LiteralString, *args: Value) -> Row | None:
        return self._real.fetch_one(sql, *args)

    def fetch_all(self, sql: LiteralString, *args: Value) -> list[Row]:
        return self._real.fetch_all(sql, *args)

    def run_nested(self, job: Callable[[Tx], T]) -> T:
        return self._real.run_nested(lambda _: job(self))

    def is_alive(self, owner: str) -> bool:
        return owner in self._world.alive

    def notify(self, topic: str) -> None:
        """Publish to no listener."""


class Desk(abc.ABC):
    """One connection to a migrated database."""

    def __init__(self) -> None:
        self.world = World()

    @abc.abstractmethod
    def _begin(self) -> Tx: ...

    @abc.abstractmethod
    def _commit(self) -> None: ...

    @abc.abstractmethod
    def _roll_back(self) -> None: ...

    @abc.abstractmethod
    def fresh(self) -> None:
        """Make the database empty and begin a new world."""

    @abc.abstractmethod
    def another(self) -> Desk:
        """A second connection to the same database, in the same world."""

    @abc.abstractmethod
    def close(self) -> None: ...

    def do(self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a job and commit it; what it raises is raised, and nothing of it stays."""
        tx = SimTx(self._begin(), self.world)
        try:
            result = job(tx, *args, **kwargs)
            self._commit()
        except BaseException:
            self._roll_back()
            raise
        return result

    def snapshot(self) -> dict[str, list[Row]]:
        """Every row of every table."""

        def job(t: Tx) -> dict[str, list[Row]]:
            return {
                table: sorted(t.fetch_all(f"SELECT * FROM {table}"), key=repr) for table in TABLES
            }

        return self.do(job)


class SqliteDesk(Desk):
    """A file; an empty one is a copy of a migrated template."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._template, self._path = folder / "template.db", folder / "desk.db"
        self._owners = SqliteLiveness(folder / "run")
        prepare_file(self._template, run_dir=folder / "run")
        self._open(self._template)
        self.do(migrate_schema)
        fetch_rows(self._connection, "PRAGMA journal_mode = DELETE")
        self.fresh()

    def another(self) -> Desk:
        other = copy.copy(self)
        other._open(self._path)
        return other

    def _open(self, path: Path) -> None:
        self._connection = open_writer(path)
        # Nobody pulls the plug on this one; the tests of the driver are others.
        fetch_rows(self._connection, "PRAGMA synchronous = OFF")
        self._cursor = new_cursor(self._connection)

    def _begin(self) -> Tx:
        self._cursor.execute("BEGIN IMMEDIATE")
        return SqliteTx(self._connection, self._cursor, JobContext(SystemClock(), self._owners))

    def _commit(self) -> None:
        try:
            self._cursor.execute("COMMIT")
        except apsw.Error as error:
            raise translate_error(error) from error

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._cursor.execute("ROLLBACK")

    def fresh(self) -> None:
        self.world = World()
        self._connection.close()
        shutil.copyfile(self._template, self._path)
        self._open(self._path)

    def close(self) -> None:
        self._connection.close()


class PostgresDesk(Desk):
    """A database; it is emptied with the constraints out of the way."""

    #: Rows that were removed are in the way of scans until they are vacuumed.
    _VACUUM_EVERY = 20

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._link = WorkerConnection(Dsn(url), set(), pause=60.0)
        self._examples = 0
        self.do(migrate_schema)

    def _begin(self) -> Tx:
        self._tx = PostgresTx(self._link, BEGIN_WRITE, SystemClock())
        return self._tx

    def _commit(self) -> None:
        try:
            self._tx.commit()
        except TransactionFailed as void:
            raise translate_postgres_error(void.error) from void

    def _roll_back(self) -> None:
        self._link.reset()

    def fresh(self) -> None:
        self.world = World()
        self.do(_empty)
        self._examples += 1
        if self._examples % self._VACUUM_EVERY == 0:
            self._link.connection.execute("VACUUM ANALYZE")

    def another(self) -> Desk:
        other = PostgresDesk(self._url)
        other.world = self.world
        return other

    def close(self) -> None:
        self._link.drop()


def _empty(t: Tx) -> None:
    tables = (*TABLES, "search_todo", "search_index")
    deletes: LiteralString = ";".join([f"DELETE FROM {table}" for table in tables])
    t.execute(f"SET LOCAL session_replication_role = replica; {deletes}")


def desk_at(url: str, folder: Path) -> Desk:
    """A desk at the store that a test's URL names."""
    return SqliteDesk(folder) if url.startswith("sqlite") else PostgresDesk(url)
