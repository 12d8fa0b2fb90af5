"""Liveness of owners: advisory locks on PostgreSQL."""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clew.errors import StoreUnavailable
from clew.store.postgres import Limits, open_postgres
from tests.integration import postgres_jobs as jobs
from tests.integration.postgres_proxy import CuttingProxy, listening
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator

    from clew.store.contract import Tx
    from clew.store.postgres import PostgresStore

pytestmark = pytest.mark.postgres

ROOT = Path(__file__).parents[2]


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    async with await open_postgres(postgres_url) as store:
        yield store


@contextmanager
def child(*args: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """A process, and the first line that it says; killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.postgres_child", *args],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}/src"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def alive(t: Tx, owner: str) -> bool:
    return t.is_alive(owner)


def dead(t: Tx, owner: str) -> bool:
    return not t.is_alive(owner)


async def test_an_owner_lives_from_its_registration_until_its_store_closes(
    store: PostgresStore, postgres_url: str
) -> None:
    async with await open_postgres(postgres_url) as other:
        assert not await store.read(alive, "a")
        await other.register_owner("a")
        await other.register_owner("b")
        await other.register_owner("a")
        assert await store.read(alive, "a")
        assert await store.write(alive, "b")
        assert not await store.read(alive, "c")
    assert not await store.read(alive, "a")
    assert not await store.read(alive, "b")


async def test_a_killed_process_is_dead_at_once(store: PostgresStore, postgres_url: str) -> None:
    with child("own", postgres_url, "a") as (process, said):
        assert said == "registered"
        assert await store.read(alive, "a")
        process.kill()
        await jobs.until(store, lambda t: dead(t, "a"))


async def test_a_stopped_process_still_lives(store: PostgresStore, postgres_url: str) -> None:
    with child("own", postgres_url, "a") as (process, _):
        process.send_signal(signal.SIGSTOP)
        assert await store.read(alive, "a")
        process.send_signal(signal.SIGCONT)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
async def test_a_forked_child_does_not_keep_its_dead_parent_alive(
    store: PostgresStore, postgres_url: str
) -> None:
    with child("own_and_fork", postgres_url, "a") as (process, grandchild):
        try:
            assert await store.read(alive, "a")
            process.kill()
            await jobs.until(store, lambda t: dead(t, "a"))
        finally:
            os.kill(int(grandchild), signal.SIGKILL)


async def test_a_lost_lock_is_taken_again(store: PostgresStore, postgres_url: str) -> None:
    async with await open_postgres(postgres_url) as other:
        await other.register_owner("a")
        await other.register_owner("b")
        for _ in range(3):
            await jobs.until(store, lambda t: jobs.terminate(t, "pg_try_advisory_lock") == 1)
            await jobs.until(store, lambda t: alive(t, "a") and alive(t, "b"))


async def test_a_lost_lock_that_is_back_is_reported_once(
    store: PostgresStore, postgres_url: str
) -> None:
    proxy = CuttingProxy(postgres_url)
    async with (
        listening(proxy.handle, postgres_url) as way,
        await open_postgres(way, limits=Limits(retry_timeout=0.3)) as other,
    ):
        await other.register_owner("a")
        proxy.go_away()
        await jobs.until(store, lambda t: dead(t, "a"))
        await wait_until(lambda: not other._liveness._connection.is_up, "the connection is down")
        with pytest.raises(StoreUnavailable, match="does not answer"):
            await other.register_owner("a")
        proxy.come_back()
        while True:
            with suppress(StoreUnavailable):
                await other.register_owner("a")
                break
        assert await store.read(alive, "a")


async def test_an_owner_cannot_be_registered_twice(store: PostgresStore, postgres_url: str) -> None:
    async with await open_postgres(postgres_url, limits=Limits(retry_timeout=0.3)) as other:
        await store.register_owner("a")
        with pytest.raises(StoreUnavailable, match="another process"):
            await other.register_owner("a")
        await other.register_owner("b")
        await store.aclose()
        await other.register_owner("a")
        assert await other.read(alive, "a")


async def test_an_owner_of_another_database_is_not_ours(
    store: PostgresStore, postgres_server: str
) -> None:
    async with await open_postgres(f"{postgres_server}/postgres") as elsewhere:
        await elsewhere.register_owner("a")
        assert not await store.read(alive, "a")


async def test_many_owners_are_distinguished_by_the_whole_lock(store: PostgresStore) -> None:
    for n in range(0, 40, 2):
        await store.register_owner(str(n))
    found = await store.read(lambda t: [n for n in range(40) if t.is_alive(str(n))])
    assert found == list(range(0, 40, 2))
