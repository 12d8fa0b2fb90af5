"""The store of the simulation: real transactions on one database in memory, without a thread."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

import apsw

from clew.clock import SystemClock
from clew.errors import StoreUnavailable
from clew.store.contract import Store, Topics, Tx
from clew.store.migrate import migrate_schema
from clew.store.sqlite.driver import new_cursor
from clew.store.sqlite.tx import JobContext, SqliteTx
from tests.simulation.loop import PROCESS, context_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from tests.simulation.chances import Chances
    from tests.simulation.loop import VirtualLoop

P = ParamSpec("P")
T = TypeVar("T")

BEGINNING = 1_800_000_000_000
_GONE = "the connection to the database was lost"


class _SortedTopics(Topics):
    """Topics in an order that is the same in each process."""

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(super().__iter__()))


def _ignore(*_: object) -> None:
    """Tell nobody."""


def _connect() -> apsw.Connection:
    connection = apsw.Connection(":memory:", statementcachesize=512)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    new_cursor(connection).execute("PRAGMA recursive_triggers = OFF")
    return connection


@functools.cache
def _empty_store() -> bytes:
    disk = Disk.__new__(Disk)
    disk.open(_connect())
    disk.run(migrate_schema)
    return disk.connection.serialize("main")


class Disk:
    """The database host: the data, its clock, and which owners it takes for alive."""

    def __init__(self, loop: VirtualLoop, chances: Chances) -> None:
        connection = _connect()
        cast("Any", connection).deserialize("main", _empty_store())
        self.open(connection)
        self._loop, self.chances = loop, chances
        self.world = context_of("world")
        self.stores: list[SimStore] = []
        #: Until when nothing can reach the database.
        self.away_until = 0.0
        #: Called after each commit.
        self.on_commit: Callable[[], None] = lambda: None
        #: Called after each job, with its name, arguments and outcome.
        self.on_run: Callable[[str, tuple[Any, ...], object], None] = _ignore

    def open(self, connection: apsw.Connection) -> None:
        """Use a connection."""
        new_cursor(connection).execute("PRAGMA foreign_keys = ON")
        self.connection, self._cursor = connection, new_cursor(connection)
        self._about = JobContext(SystemClock(), cast("Any", self))
        self.alive: set[str] = set()
        #: Milliseconds by which the clock has jumped.
        self.jumped = 0
        self._loop = cast("Any", None)

    def now(self) -> int:
        """Return the clock of the database host."""
        passed = 0.0 if self._loop is None else self._loop.time()
        return BEGINNING + self.jumped + round(passed * 1000)

    def is_alive(self, owner: str) -> bool:
        """Return whether an owner has its proof of life."""
        return owner in self.alive

    def run(self, job: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a job in a transaction of its own."""
        return self.transact(job, args, kwargs)[0]

    def transact(
        self, job: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[T, set[str]]:
        """Run a job and commit it; what it raises is raised, and nothing of it stays."""
        self._cursor.execute("BEGIN IMMEDIATE")
        tx = SqliteTx(self.connection, self._cursor, self._about, self.now())
        try:
            result = job(tx, *args, **kwargs)
            self._cursor.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self._cursor.execute("ROLLBACK")
            raise
        return result, tx.topics

    def publish(self, topics: set[str], origin: SimStore) -> None:
        """Tell every gateway, sooner or later, and perhaps more than once."""
        for store in self.stores:
            times = 2 if self.chances.fault("repeated notification") else 1
            for _ in range(times):
                longest = 3.0 if self.chances.fault("late notification") else 0.02
                news = None if self.chances.fault("notification merged into anything") else topics
                self._loop.call_later(
                    self.chances.delay(longest), store.hear, news, store is origin,
                    context=self.world,
                )  # fmt: skip


class Call:
    """A job on its way to the database, and back."""

    def __init__(self, store: SimStore, job: Any, args: Any, kwargs: Any, *, writes: bool) -> None:
        self.store, self._writes = store, writes
        self.job, self.args, self.kwargs = job, args, kwargs
        self.loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[Any] = self.loop.create_future()

    def execute(self) -> None:
        store, chances = self.store, self.store.disk.chances
        if store.is_dead and chances.random.random() < 0.5:
            return  # it never left the process
        if self.outcome.cancelled():
            return
        value: Any = None
        error: BaseException | None = None
        if self.loop.time() < store.disk.away_until or chances.fault("store unavailable"):
            error = StoreUnavailable(_GONE)
        else:
            value, error = self.run()
            store.disk.on_run(getattr(self.job, "__name__", ""), self.args, error or value)
            if self._writes and error is None and chances.fault("answer of a commit lost"):
                error = StoreUnavailable(_GONE)
        late = 2.0 if chances.fault("slow store") else 0.004
        self.loop.call_later(
            chances.delay(late), self._resolve, value, error, context=store.disk.world
        )

    def run(self) -> tuple[Any, BaseException | None]:
        """Run the job; return its result, or what it raised."""
        disk = self.store.disk
        name = getattr(self.job, "__name__", "job")
        try:
            value, topics = disk.transact(self.job, self.args, self.kwargs)
        except Exception as error:  # noqa: BLE001  (raised to the caller)
            disk.chances.note(f"{self.loop.time():.6f} {self.store.process} {name}: {error!r}")
            return None, error
        if not self._writes:
            return value, None
        disk.chances.note(f"{self.loop.time():.6f} {self.store.process} {name}")
        disk.publish(topics, self.store)
        disk.on_commit()
        return value, None

    def _resolve(self, value: Any, error: BaseException | None) -> None:
        if self.outcome.done() or self.store.is_dead:
            return
        if error is None:
            self.outcome.set_result(value)
        else:
            self.outcome.set_exception(error)


class SimStore(Store):
    """One process's connection to the disk; of the process that opens it."""

    def __init__(self, disk: Disk, loop: VirtualLoop) -> None:
        self.disk, self._loop = disk, loop
        self.process = PROCESS.get()
        self._closed = False
        self._owners: list[str] = []
        self._news: set[str] = set()
        self._here: set[str] = set()
        self._anything = True
        self._heard = asyncio.Event()
        self._heard.set()
        disk.stores.append(self)

    @property
    def is_dead(self) -> bool:
        """Return whether its process was killed."""
        return self._loop.is_dead(self.process)

    async def write(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._submit(job, args, kwargs, writes=True)

    async def read(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._submit(job, args, kwargs, writes=False)

    async def _submit(self, job: Any, args: Any, kwargs: Any, *, writes: bool) -> Any:
        if self._closed:
            raise StoreUnavailable("the store is closed")
        call = Call(self, job, args, kwargs, writes=writes)
        late = 1.0 if self.disk.chances.fault("slow store") else 0.003
        self._loop.call_later(self.disk.chances.delay(late), call.execute, context=self.disk.world)
        return await call.outcome

    def hear(self, topics: set[str] | None, here: bool) -> None:
        """Add news for the listener."""
        if topics is None:
            self._anything = True
        else:
            self._news |= topics
            if here:
                self._here |= topics
        self._heard.set()

    async def watch_changes(self) -> AsyncIterator[frozenset[str] | None]:
        self._anything = True
        self._heard.set()
        while not self._closed:
            await self._heard.wait()
            self._heard.clear()
            news = _SortedTopics(self._news)
            news.here = frozenset(self._here)
            everything, self._anything = self._anything, False
            self._news, self._here = set(), set()
            yield None if everything else news

    async def register_owner(self, owner: str) -> None:
        if self._closed or self._loop.time() < self.disk.away_until:
            raise StoreUnavailable(_GONE)
        if owner not in self._owners:
            self._owners.append(owner)
        self.disk.alive.add(owner)
        if self.disk.chances.fault("proof of life lost"):
            self._loop.call_later(
                self.disk.chances.delay(5.0), self.lose_proof, context=self.disk.world
            )

    def lose_proof(self) -> None:
        """Lose the proof of life for a while, as with the connection that holds it."""
        self.disk.alive.difference_update(self._owners)
        if not self._closed and not self.is_dead:
            self._loop.call_later(
                0.5 + 2.0 * self.disk.chances.random.random(), self._prove, context=self.disk.world
            )

    def _prove(self) -> None:
        if not self._closed and not self.is_dead:
            self.disk.alive.update(self._owners)

    async def check_available(self) -> None:
        if self._loop.time() < self.disk.away_until:
            raise StoreUnavailable(_GONE)

    async def aclose(self) -> None:
        self.drop()

    def drop(self) -> None:
        """Close at once: of a process that ends, or is dead."""
        self._closed = True
        self.disk.alive.difference_update(self._owners)
        self._heard.set()
        if self in self.disk.stores:
            self.disk.stores.remove(self)
