"""A PostgreSQL server that goes away, comes back, is full, or is a stand-by."""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import asyncio
import itertools
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from typing import TYPE_CHECKING

import psycopg
import pytest

from clew.errors import StoreUnavailable
from clew.store.postgres import Limits, open_postgres
from clew.store.postgres.tx import advisory_lock_key
from tests import postgres
from tests.integration import postgres_jobs as jobs
from tests.integration.postgres_proxy import BlackHole, listening
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterator

    from clew.store.contract import Store, Tx
    from clew.store.postgres import PostgresStore

pytestmark = pytest.mark.postgres

BRIEF = Limits(retry_timeout=0.3)
PATIENT = Limits(retry_timeout=30, max_losses=100)


class Server:
    """A server of our own, which may be stopped."""

    def __init__(self, home: postgres.Home) -> None:
        self._home = home
        self.url = home.url()

    async def stop(self, mode: str = "immediate") -> None:
        await asyncio.to_thread(self._home.control, "stop", "--mode", mode)

    async def start(self) -> None:
        log = str(self._home.folder / "server.log")
        await asyncio.to_thread(self._home.control, "start", "--log", log)

    @asynccontextmanager
    async def stand_by(self) -> AsyncGenerator[None]:
        """For the length of the block the server waits for a primary, and is read only."""
        signal = self._home.data / "standby.signal"
        await self.stop("fast")
        signal.touch()
        await self.start()
        try:
            yield
        finally:
            await self.stop("fast")
            signal.unlink()
            await self.start()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres.home() as home:
        yield Server(home)


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    with postgres.database(server.url) as url:
        yield url


def make_ledger(t: Tx) -> None:
    jobs.make_tables(t)
    jobs.add(t, "total")


def post(t: Tx, name: str) -> None:
    """Store a note and count it, once; repeating it does nothing."""
    if t.execute("INSERT INTO note (id) VALUES ($1) ON CONFLICT DO NOTHING", name):
        jobs.increase(t, "total")
        t.notify(name)


async def test_a_crash_of_the_server_under_load_loses_and_doubles_nothing(
    server: Server, url: str
) -> None:
    acknowledged: list[str] = []
    over = asyncio.Event()

    async def writer(store: PostgresStore, number: int) -> None:
        for n in count():
            await store.write(post, f"{number}-{n}")
            acknowledged.append(f"{number}-{n}")
            if over.is_set():
                return

    async with await open_postgres(url, limits=PATIENT) as store:
        await store.write(make_ledger)
        async with asyncio.TaskGroup() as tasks:
            for number in range(20):
                tasks.create_task(writer(store, number))
            for _ in range(3):
                await asyncio.sleep(0.3)
                await server.stop()
                await server.start()
            over.set()
        assert set(await store.read(jobs.names)) == {*acknowledged, "total"}
        assert await store.read(jobs.value, "total") == len(set(acknowledged))
        assert len(acknowledged) == len(set(acknowledged)) > 20


async def test_while_the_server_is_down_jobs_are_refused_and_then_continue(
    server: Server, url: str
) -> None:
    async with await open_postgres(url, limits=BRIEF) as store:
        await store.write(jobs.make_tables)
        await store.register_owner("me")
        changes = store.watch_changes()
        await server.stop("fast")
        refused = await asyncio.gather(
            *(store.write(jobs.add, f"lost {n}") for n in range(50)),
            *(store.read(jobs.count) for _ in range(50)),
            store.check_available(),
            return_exceptions=True,
        )
        assert {type(error) for error in refused} == {StoreUnavailable}
        await server.start()
        assert await store.write(jobs.add, "a") == 1
        await store.check_available()
        await jobs.until(store, lambda t: t.is_alive("me"))
        async with await open_postgres(url) as other:
            await jobs.settle(changes, other)


async def test_a_job_waits_for_a_server_that_is_starting(server: Server, url: str) -> None:
    async with await open_postgres(url, limits=PATIENT) as store:
        await store.write(jobs.make_tables)
        await server.stop("fast")
        writing = asyncio.create_task(store.write(jobs.add, "a"))
        opening = asyncio.create_task(open_postgres(url, limits=PATIENT))
        await server.start()
        assert await writing == 1
        await (await opening).aclose()


async def test_a_server_that_is_down_cannot_be_opened(server: Server, url: str) -> None:
    await server.stop("fast")
    try:
        with pytest.raises(StoreUnavailable, match="refused"):
            await open_postgres(url, limits=BRIEF)
    finally:
        await server.start()


async def test_a_stand_by_takes_no_writes_until_it_is_promoted(server: Server, url: str) -> None:
    async with await open_postgres(url, limits=BRIEF) as store:
        await store.write(jobs.make_tables)
        async with server.stand_by():
            assert await store.read(jobs.count) == 0
            tries = (
                store.write(jobs.add, "a"),
                store.check_available(),
                open_postgres(url, limits=BRIEF),
            )
            refused = await asyncio.gather(*tries, return_exceptions=True)
        assert [type(error) for error in refused] == [StoreUnavailable] * 3
        assert all("recovery" in str(error) for error in refused)
        assert await store.write(jobs.add, "a") == 1


async def test_too_many_connections_are_waited_for_within_bounds(server: Server, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE ROLE few LOGIN CONNECTION LIMIT 1")
        admin.execute("GRANT ALL ON SCHEMA public TO few")
    few = url.replace("postgres@", "few@")
    try:
        async with await open_postgres(few, limits=Limits(retry_timeout=0.3, writers=1)) as store:
            await store.write(jobs.make_tables)
            with pytest.raises(StoreUnavailable, match="too many connections"):
                await store.read(jobs.count)
            assert await store.write(jobs.add, "a") == 1
        # A burst has to do with the one connection that the server gives.
        async with await open_postgres(few) as store:
            await asyncio.gather(*(store.write(jobs.add, str(n)) for n in range(30)))
        # The server notices a closed connection a little later.
        async with await open_postgres(few) as store:
            assert await store.write(jobs.add, "b") == 32
            # Nothing but the right to connect and to write is needed for that.
            await store.check_available()
    finally:
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("DROP OWNED BY few CASCADE")
            admin.execute("DROP ROLE few")


def sleep(t: Tx, seconds: float) -> str:
    t.fetch_one("SELECT pg_sleep($1)", seconds)
    return "slept"


def alive(t: Tx, owner: str) -> bool:
    return t.is_alive(owner)


async def test_a_server_that_fell_silent_is_not_waited_for_for_ever(url: str) -> None:
    hole = BlackHole(url)
    limits = Limits(retry_timeout=0.3, stall_check_interval=0.1)
    async with listening(hole.handle, url) as through:
        # The least that can be asked for.
        hasty = f"{through}?connect_timeout=2"
        async with await open_postgres(hasty, limits=limits) as store:
            await store.write(jobs.make_tables)
            hole.open.clear()
            with pytest.raises(StoreUnavailable):
                await store.write(jobs.add, "a")
            hole.open.set()
            assert await store.write(jobs.add, "b") == 1


async def test_a_job_that_is_only_slow_is_let_alone(url: str) -> None:
    async with await open_postgres(
        url, limits=Limits(stall_check_interval=0.05, max_losses=0)
    ) as store:
        assert await store.write(sleep, 0.5) == "slept"


async def test_a_statement_that_the_server_ends_is_tried_within_bounds_and_leaves_nothing(
    url: str,
) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        name = url.rpartition("/")[2]
        admin.execute(f"ALTER DATABASE {name} SET statement_timeout = '30ms'".encode())

    def slow(t: Tx) -> None:
        jobs.add(t, "a")
        sleep(t, 5)

    async with await open_postgres(url, limits=Limits(queue_timeout=0.2)) as store:
        await store.write(jobs.make_tables)
        with pytest.raises(StoreUnavailable, match="nothing was stored") as raised:
            await store.write(slow)
        assert not raised.value.uncertain
        assert await store.read(jobs.count) == 0


async def test_an_owner_that_lost_its_lock_with_the_server_does_not_count_as_dead(
    server: Server, url: str
) -> None:
    patient = Limits(retry_timeout=30, max_losses=100, liveness_grace=1.0)
    async with await open_postgres(url, limits=patient) as store:
        async with await open_postgres(url, limits=patient) as other:
            await store.register_owner("me")
            await other.register_owner("other")
            await server.stop()
            await server.start()
            # At once, before the other one is back.
            assert await store.read(alive, "other")
            await jobs.until(store, lambda t: alive_in_truth(t, "other"))
        await jobs.until(store, lambda t: not t.is_alive("other"))


WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


async def test_a_lost_commit_is_acknowledged_only_once_a_stand_by_has_it(
    server: Server, url: str
) -> None:
    """Its repetition finds it stored, and writes nothing, but waits as if it did."""

    def waiting_but_for(pid: int) -> int | None:
        found = admin.execute(WAITING).fetchone()
        return found[0] if found and found[0] != pid else None

    async def write_until_one_waits(store: Store) -> tuple[asyncio.Task[None], int, int]:
        # A reload is asynchronous: commits do not wait before the checkpointer has read it,
        # whatever a backend shows as its setting.
        for number in itertools.count(1):
            writing = asyncio.create_task(store.write(post, f"note {number}"))
            await wait_until(
                lambda writing=writing: writing.done() or waiting_but_for(0), "a waiting commit"
            )
            if not writing.done() and (pid := waiting_but_for(0)):
                return writing, pid, number
            await writing
        raise AssertionError

    async with await open_postgres(url, limits=PATIENT) as store:
        await store.write(make_ledger)
        with psycopg.connect(url, autocommit=True) as admin:
            with synchronous(admin, "nobody"):
                writing, first, number = await write_until_one_waits(store)
                admin.execute("SELECT pg_terminate_backend(%s)", (first,))
                await wait_until(lambda: waiting_but_for(first), "its repetition waits")
                assert not writing.done()
            await writing
        assert await store.read(jobs.value, "total") == number


@contextmanager
def synchronous(admin: psycopg.Connection, standby: str) -> Generator[None]:
    """For the length of the block commits wait for a stand-by."""
    admin.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{standby}'".encode())
    admin.execute("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
        admin.execute("SELECT pg_reload_conf()")


def alive_in_truth(t: Tx, owner: str) -> bool:
    """Return whether its lock is held."""
    high, low = divmod(advisory_lock_key(owner), 1 << 32)
    held = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = $1 AND objid = $2"
    return t.fetch_one(held, high, low) is not None
