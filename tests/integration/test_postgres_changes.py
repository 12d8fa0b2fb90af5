"""Notifications of changes on PostgreSQL, and when "anything may have changed"."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from clew.store.postgres import Limits, open_postgres
from tests.integration import postgres_jobs as jobs
from tests.integration.postgres_proxy import CuttingProxy, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from clew.store.contract import Tx
    from clew.store.postgres import PostgresStore

pytestmark = pytest.mark.postgres

#: So patient that what is heard was said.
QUIET = Limits(poll_interval=600)


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    async with await open_postgres(postgres_url, limits=QUIET) as store:
        await store.write(jobs.make_tables)
        yield store


@pytest.fixture
async def other(postgres_url: str) -> AsyncIterator[PostgresStore]:
    """Another process's store, as far as the server can tell."""
    async with await open_postgres(postgres_url, limits=QUIET) as store:
        yield store


async def settled(
    store: PostgresStore, other: PostgresStore
) -> AsyncIterator[frozenset[str] | None]:
    """A listener that has heard what comes at its start, and whose connection listens."""
    changes = store.watch_changes()
    await jobs.settle(changes, other)
    return changes


async def test_anything_may_have_changed_comes_first(store: PostgresStore) -> None:
    assert await anext(store.watch_changes()) is None


async def test_topics_come_from_here_and_from_others_once_each(
    store: PostgresStore, other: PostgresStore
) -> None:
    changes = await settled(store, other)
    for writer in (store, other):
        await writer.write(jobs.wake, "a", "b", "a")
        assert await anext(changes) == {"a", "b"}
    # The echo of our own commit would come before this.
    await other.write(jobs.wake, "c")
    assert await anext(changes) == {"c"}


async def test_topics_are_merged_without_a_reader_and_none_is_lost(
    store: PostgresStore, other: PostgresStore
) -> None:
    changes = await settled(store, other)
    heard: set[str] = set()
    await asyncio.gather(*((store, other)[n % 2].write(jobs.wake, str(n)) for n in range(100)))
    while len(heard) < 100:
        heard |= await anext(changes) or set()
    assert heard == {str(n) for n in range(100)}


async def test_each_listener_hears_for_itself(store: PostgresStore, other: PostgresStore) -> None:
    first, second = await settled(store, other), await settled(store, other)
    await store.write(jobs.wake, "a")
    for changes in (first, second):
        assert "a" in (await anext(changes) or ())


async def test_a_failed_job_sends_no_notification(
    store: PostgresStore, other: PostgresStore
) -> None:
    def job(t: Tx) -> None:
        t.notify("failed")
        raise LookupError

    changes = await settled(store, other)
    with pytest.raises(LookupError):
        await store.write(job)
    await store.write(jobs.wake, "a")
    assert await anext(changes) == {"a"}


async def test_a_job_that_ran_twice_wakes_only_for_the_run_that_counts(
    store: PostgresStore, other: PostgresStore
) -> None:
    runs: list[None] = []

    def job(t: Tx) -> None:
        runs.append(None)
        t.notify(f"run {len(runs)}")
        if len(runs) == 1:
            jobs.break_connection(t)

    changes = await settled(store, other)
    await store.write(job)
    assert await anext(changes) == {"run 2"}


@pytest.mark.parametrize("topic", ["x" * 8000, "ä" * 4000, "", "a\0b"])
async def test_a_topic_that_does_not_fit_means_anything(
    store: PostgresStore, other: PostgresStore, topic: str
) -> None:
    changes = await settled(store, other)
    for writer in (store, other):
        await writer.write(jobs.wake, topic)
        assert await anext(changes) is None


async def test_a_long_topic_that_fits_arrives(store: PostgresStore, other: PostgresStore) -> None:
    changes = await settled(store, other)
    await other.write(jobs.wake, "x" * 7999)
    assert await anext(changes) == {"x" * 7999}


async def test_a_quiet_listener_is_woken_to_check(postgres_url: str) -> None:
    async with await open_postgres(postgres_url, limits=Limits(poll_interval=0.01)) as store:
        changes = store.watch_changes()
        assert [await anext(changes) for _ in range(5)] == [None] * 5


async def test_a_cancelled_step_loses_nothing(store: PostgresStore, other: PostgresStore) -> None:
    changes = await settled(store, other)
    for n in range(20):
        step = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)
        await store.write(jobs.wake, str(n))
        step.cancel()
        heard = (await asyncio.gather(step, return_exceptions=True))[0]
        # A change may be told twice: by whoever made it, and by the server.
        while isinstance(heard, BaseException) or heard == frozenset({str(n - 1)}):
            assert isinstance(heard, (asyncio.CancelledError, frozenset))
            heard = await anext(changes)
        assert heard is not None
        assert str(n) in heard <= {str(n - 1), str(n)}


async def test_a_lost_connection_means_that_anything_may_have_changed(
    store: PostgresStore, other: PostgresStore
) -> None:
    changes = await settled(store, other)
    for n in range(3):
        await jobs.until(other, lambda t: jobs.terminate(t, "LISTEN") == 1)
        assert await anext(changes) is None
        await other.write(jobs.wake, str(n))
        assert await anext(changes) == {str(n)}


async def test_after_a_lost_commit_anything_may_have_changed(
    postgres_url: str, other: PostgresStore
) -> None:
    proxy = CuttingProxy(postgres_url)
    async with (
        listening(proxy.handle, postgres_url) as through,
        await open_postgres(through, limits=QUIET) as store,
    ):
        await store.write(jobs.make_tables)
        changes = await settled(store, other)
        proxy.plan = ["swallow"]
        await store.write(jobs.add, "a")
        assert await anext(changes) is None


async def test_listeners_end_when_the_store_closes(
    store: PostgresStore, other: PostgresStore
) -> None:
    changes = await settled(store, other)
    step = asyncio.ensure_future(anext(changes, "end"))
    await asyncio.sleep(0)
    await store.aclose()
    assert await step == "end"
    assert await anext(changes, "end") == "end"
    assert await anext(store.watch_changes(), "end") == "end"


async def test_an_unreferenced_listener_is_dropped(
    store: PostgresStore, other: PostgresStore
) -> None:
    kept = await settled(store, other)
    dropped = [weakref.ref(store.watch_changes()) for _ in range(10)]
    gc.collect()
    assert [listener() for listener in dropped] == [None] * 10
    await store.write(jobs.wake, "a")
    assert "a" in (await anext(kept) or ())
