"""A PostgreSQL server that goes away, comes back, is full, or is a stand-by."""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING

import psycopg
import pytest

from clew.errors import StoreUnavailable
from clew.store.postgres import Limits, open_postgres
from tests import postgres
from tests.integration import postgres_jobs as jobs

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from clew.store.contract import Tx
    from clew.store.postgres import PostgresStore

pytestmark = pytest.mark.postgres

BRIEF = Limits(patience=0.3)
PATIENT = Limits(patience=30, losses=100)


class Server:
    """A server of our own, which may be stopped."""

    def __init__(self, home: postgres.Home) -> None:
        self._home = home
        self.url = home.url()

    async def stop(self, mode: str = "immediate") -> None:
        await asyncio.to_thread(self._home._control, "stop", "--mode", mode)

    async def start(self) -> None:
        log = str(self._home.folder / "server.log")
        await asyncio.to_thread(self._home._control, "start", "--log", log)

    @asynccontextmanager
    async def stand_by(self) -> AsyncGenerator[None]:
        """For the length of the block the server waits for a primary, and is read only."""
        signal = self._home._data / "standby.signal"
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
    if t.run("INSERT INTO note (id) VALUES ($1) ON CONFLICT DO NOTHING", name):
        jobs.increase(t, "total")
        t.wake(name)


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


async def test_while_the_server_is_down_jobs_are_refused_and_then_go_on(
    server: Server, url: str
) -> None:
    async with await open_postgres(url, limits=BRIEF) as store:
        await store.write(jobs.make_tables)
        await store.register("me")
        changes = store.changes()
        await server.stop("fast")
        refused = await asyncio.gather(
            *(store.write(jobs.add, f"lost {n}") for n in range(50)),
            *(store.read(jobs.count) for _ in range(50)),
            store.check(),
            return_exceptions=True,
        )
        assert {type(error) for error in refused} == {StoreUnavailable}
        await server.start()
        assert await store.write(jobs.add, "a") == 1
        await store.check()
        await jobs.until(store, lambda t: t.alive("me"))
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
            tries = (store.write(jobs.add, "a"), store.check(), open_postgres(url, limits=BRIEF))
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
        async with await open_postgres(few, limits=Limits(patience=0.3, writers=1)) as store:
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
    finally:
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("DROP OWNED BY few CASCADE")
            admin.execute("DROP ROLE few")
