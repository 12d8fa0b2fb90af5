"""Notifications of changes, within a process and between processes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from clew.errors import LeaseHeld
from clew.store.sqlite import SqliteStore, open_sqlite
from clew.store.sqlite.changes import SqliteChangeFeed
from tests.integration.sqlite_jobs import append, child, items, line_of, make_log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from clew.store.contract import Tx


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with await open_sqlite(tmp_path / "clew.db", run_dir=tmp_path / "run") as store:
        await store.write(make_log)
        yield store


def wake(t: Tx, *topics: str) -> None:
    for topic in topics:
        t.notify(topic)


async def settled(store: SqliteStore) -> AsyncIterator[frozenset[str] | None]:
    """A listener that has seen all that happened before it."""
    changes = store.watch_changes()
    assert await anext(changes) is None
    # The first look at what others commit may find something, and hides the topics of its time.
    for n in range(100):
        await store.write(wake, f"settled-{n}")
        news = await anext(changes)
        while news is not None and f"settled-{n}" not in news:
            news = await anext(changes)
        if news is not None:
            break
    return changes


async def test_the_first_item_stands_for_anything(store: SqliteStore) -> None:
    assert await anext(store.watch_changes()) is None


async def test_topics_are_published_after_the_commit(store: SqliteStore) -> None:
    changes = await settled(store)
    await store.write(append, "x")
    assert await anext(changes) == {"a"}
    assert await store.read(items) == ["x"]


async def test_topics_are_merged_without_a_reader_and_none_is_lost(store: SqliteStore) -> None:
    changes = await settled(store)
    for n in range(300):
        await store.write(wake, f"{n}", "common")
    heard: set[str] = set()
    steps = 0
    while len(heard) < 301:
        news = await anext(changes)
        assert news is not None
        heard |= news
        steps += 1
    assert steps < 300


async def test_each_listener_hears_for_itself(store: SqliteStore) -> None:
    first, second = await settled(store), store.watch_changes()
    assert await anext(second) is None
    await store.write(wake, "a")
    assert await anext(first) == {"a"}
    await store.write(wake, "b")
    assert await anext(first) == {"b"}
    assert await anext(second) == {"a", "b"}


async def test_a_failed_job_sends_no_notification(store: SqliteStore) -> None:
    def fail(t: Tx) -> None:
        t.notify("never")
        raise LeaseHeld("c", holder="o")

    changes = await settled(store)
    with pytest.raises(LeaseHeld):
        await store.write(fail)
    await store.write(wake, "later")
    assert await anext(changes) == {"later"}


async def test_our_own_commits_are_not_taken_for_those_of_others(store: SqliteStore) -> None:
    changes = await settled(store)
    for n in range(20):
        await store.write(append, f"{n}")
        assert await anext(changes) == {"a"}
        # Longer than a look at others takes to come round.
        await asyncio.sleep(0.06 if n % 5 == 0 else 0)


async def test_the_commit_of_another_process_is_noticed(store: SqliteStore, tmp_path: Path) -> None:
    changes = await settled(store)
    with child("write", tmp_path, "x", 1, 1) as process:
        line_of(process)
        assert await anext(changes) is None
        assert await store.read(items) == ["x-0-0"]


async def test_another_process_is_noticed_also_while_we_write(
    store: SqliteStore, tmp_path: Path
) -> None:
    changes = await settled(store)
    with child("write", tmp_path, "x", 1, 1):
        n = 0
        while await anext(changes) is not None:
            await store.write(append, f"own-{n}")
            n += 1
            await store.write(wake, "go on")


async def test_nothing_of_another_process_is_missed(store: SqliteStore, tmp_path: Path) -> None:
    """After the last item nothing is hidden: who reads at each item ends up with everything."""
    changes = store.watch_changes()
    seen: list[str] = []
    with child("write", tmp_path, "x", 2, 50):
        async for _ in changes:
            seen = await store.read(items)
            if len(seen) == 100:
                break
    assert len(set(seen)) == 100


async def test_two_stores_of_one_process_notice_each_other(
    store: SqliteStore, tmp_path: Path
) -> None:
    async with await open_sqlite(tmp_path / "clew.db", run_dir=tmp_path / "run") as other:
        changes = await settled(other)
        await store.write(append, "x")
        assert await anext(changes) is None


async def test_a_store_that_only_listens_hears_of_others(
    store: SqliteStore, tmp_path: Path
) -> None:
    async with await open_sqlite(tmp_path / "clew.db", run_dir=tmp_path / "run") as other:
        changes = other.watch_changes()
        assert await anext(changes) is None
        seen: list[str] = []
        await store.write(append, "x")
        while not seen:
            assert await anext(changes) is None
            seen = await other.read(items)
        assert seen == ["x"]


async def test_a_listener_that_is_behind_hears_of_the_end() -> None:
    """The end comes between a listener's waking and its taking of the news."""
    changes = SqliteChangeFeed(on_listen=lambda: None)
    listening = changes.listen()
    assert await anext(listening) is None
    changes.publish(frozenset("a"))
    taking = asyncio.ensure_future(anext(listening, "the end"))
    await asyncio.sleep(0)
    changes.close()
    assert await taking in ({"a"}, "the end")
    assert await anext(listening, "the end") == "the end"


async def test_listeners_end_with_the_store(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path / "clew.db", run_dir=tmp_path / "run")

    async def listen() -> list[frozenset[str] | None]:
        return [news async for news in store.watch_changes()]

    async with asyncio.TaskGroup() as tasks:
        listening = [tasks.create_task(listen()) for _ in range(3)]
        await asyncio.sleep(0)
        await store.aclose()
    assert all(set(task.result()) <= {None} for task in listening)
    assert [news async for news in store.watch_changes()] == []


async def test_a_cancelled_listener_is_forgotten() -> None:
    changes = SqliteChangeFeed(on_listen=lambda: None)

    async def listen() -> None:
        async for _ in changes.listen():
            pass

    task = asyncio.create_task(listen())
    await asyncio.sleep(0)
    assert changes.has_listeners
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not changes.has_listeners
