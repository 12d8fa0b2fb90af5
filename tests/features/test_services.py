"""Services that run in one place only: their lock, their failures and their end."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from clew.core.ids import IdGenerator, OwnerId
from clew.engine.engine import Engine
from clew.engine.feature_runner import FeatureRunner
from clew.plugin.registry import Features
from clew.runtime import build_services, make_feature_context
from clew.store.opening import open_store
from clew.store.transactions import locks
from tests.integration.api_server import settings_for
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
    from pathlib import Path

    from clew.plugin import FeatureContext
    from clew.store.contract import Store, Tx

LOCK = "service:watch"


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    with capture_logs():
        yield


@pytest.fixture
async def store(store_url: str, tmp_path: Path) -> AsyncGenerator[Store]:
    async with await open_store(store_url, home=tmp_path) as opened:
        yield opened


def runner_of(
    store: Store,
    run: Callable[[FeatureContext], Awaitable[None]],
    *,
    home: Path,
    pause: float,
    lock_seconds: float = 30,
) -> FeatureRunner:
    features = Features()
    features.register("watch", lambda registry: registry.add_service("watch", run, where="leader"))
    context = make_feature_context(settings_for(home), store, IdGenerator(lambda: 0))
    return FeatureRunner(
        features,
        context,
        OwnerId("own_1"),
        longest_pause=pause,
        lock_duration=timedelta(seconds=lock_seconds),
    )


async def test_a_leader_that_raises_gives_its_lock_back(store: Store, tmp_path: Path) -> None:
    ran = asyncio.Event()

    async def fail(context: FeatureContext) -> None:
        ran.set()
        raise RuntimeError("no")

    async with runner_of(store, fail, home=tmp_path, pause=3600):
        await ran.wait()

        async def is_free() -> bool:
            return await store.read(locks.get_lock_holder, LOCK) is None

        await wait_until(is_free)


@pytest.mark.both_databases
async def test_a_runner_ends_although_it_was_ending_a_service_that_lost_its_lock(
    store: Store, tmp_path: Path
) -> None:
    running, ending, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def cling(context: FeatureContext) -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await may_end.wait()

    services = build_services(settings_for(tmp_path), store)
    async with Engine(services, role="test", version="0") as other:
        async with runner_of(store, cling, home=tmp_path, pause=3600, lock_seconds=0.02):
            await running.wait()
            await store.write(_move_lock, other.owner_id)
            await ending.wait()
            asyncio.get_running_loop().call_soon(may_end.set)
        assert await store.read(locks.get_lock_holder, LOCK) == other.owner_id


def _move_lock(t: Tx, holder: str) -> None:
    t.execute("UPDATE lock SET holder = $1, expires_at = $2", holder, t.now + 3_600_000)
