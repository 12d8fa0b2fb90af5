"""The files of a store stay as small as what is in them; who idles writes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from clew.core.reset_policy import ResetPolicy
from clew.engine.maintenance import run_maintenance
from clew.store import maintenance, search, vacuum
from clew.store.opening import open_store
from clew.store.sqlite import group_commit, opening
from clew.store.transactions.deletion import mark_deleted
from tests.contract.search_log import Log
from tests.planting.story import Story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from clew.store.contract import Store, Tx

NEVER = ResetPolicy()
FILE = "sqlite:///clew.db"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with await open_store(FILE, home=tmp_path) as opened:
        yield opened


async def filled(store: Store, megabytes: int) -> Log:
    log = await Log.open(store)
    for _ in range(megabytes * 4):
        await log.say("x" * 256 * 1024)
    return log


async def test_space_freed_by_a_deletion_is_returned_in_slices(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await filled(store, megabytes=3)
    kept = await Log.open(store)
    await kept.say("kept")
    await store.write(mark_deleted, log.id)
    await maintenance.erase_conversation(store, log.id)
    large = (await store.read(vacuum.measure_disk_usage)).free
    assert large is not None
    assert large > 3_000_000
    assert not await store.read(vacuum.has_reclaimable_space), (
        "so little is kept for what is written next"
    )
    monkeypatch.setattr(vacuum, "_MIN_FREE_PAGES", 100)
    given = [await store.write(vacuum.release_space) for _ in range(2)]
    # A page of the file's own map may go with them.
    assert all(200 <= pages <= 202 for pages in given)
    await run_maintenance(store, NEVER)
    found = await store.read(vacuum.measure_disk_usage)
    assert found.free is not None
    assert found.free <= 300 * 4096
    assert found.total < 2_000_000
    await store.aclose()
    assert (tmp_path / "clew.db").stat().st_size == found.total


async def test_a_process_that_idles_writes_nothing(store: Store, tmp_path: Path) -> None:
    await store.write(Story(name="one").tell)
    for _ in range(2):
        await maintenance.update_index(store)
        await run_maintenance(store, NEVER)
    log = tmp_path / "clew.db-wal"
    before = log.stat()
    for _ in range(20):
        await maintenance.update_index(store)
        await run_maintenance(store, NEVER)
    after = log.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


@pytest.mark.both_databases
async def test_expired_records_are_deleted_in_slices(store_url: str, tmp_path: Path) -> None:
    def add(t: Tx) -> None:
        for n in range(1_100):
            key = n.to_bytes(4, "big")
            t.execute(
                "INSERT INTO idempotency (key, body, created_at, expires_at) VALUES ($1, $1, 1, 1)",
                key,
            )
            t.execute(
                """
                INSERT INTO dedupe (key, inbox_id, conversation_id, expires_at)
                VALUES ($1, 'x', 'x', 1)
                """,
                key,
            )
            t.execute(
                "INSERT INTO hook_mark (plugin, hook, subject, told_at) VALUES ('p', 'h', $1, 1)",
                f"{n}",
            )
        t.execute("INSERT INTO lock (name, holder, expires_at) VALUES ('compression:x', 'x', 1)")
        t.execute(
            """
            INSERT INTO owner (id, host, pid, role, version, started_at)
            VALUES ('own_lost', 'h', 1, 'serve', '0', 1)
            """
        )

    def left(t: Tx) -> list[int]:
        tables = ("idempotency", "dedupe", "hook_mark")
        counts = [
            cast("tuple[int]", t.fetch_one(f"SELECT count(*) FROM {table}"))[0] for table in tables
        ]
        counts += [len(t.fetch_all("SELECT 1 FROM lock WHERE name LIKE 'compression%'"))]
        return [*counts, len(t.fetch_all("SELECT 1 FROM owner WHERE ended_at IS NULL"))]

    async with await open_store(store_url, home=tmp_path) as store:
        await store.write(add)
        assert await store.read(left) == [1_100, 1_100, 1_100, 1, 1]
        await run_maintenance(store, NEVER)
        assert await store.read(left) == [0, 0, 0, 0, 0]


async def test_a_rebuild_of_the_index_that_dies_again_and_again_continues_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    """B061: no lock, no second copy; the next one goes on where it was."""
    async with await open_store(FILE, home=tmp_path) as store:
        log = await filled(store, megabytes=1)
        await log.say(*(f"word {n}" for n in range(3_000)))
        await maintenance.update_index(store)
        size = (await store.read(vacuum.measure_disk_usage)).total
        await store.write(search.mark_damaged)
    for _ in range(5):
        async with await open_store(FILE, home=tmp_path) as store:
            await maintenance.update_index(store, slices=1)
    async with await open_store(FILE, home=tmp_path) as store:
        await maintenance.update_index(store)
        assert (await store.read(vacuum.measure_disk_usage)).total < 1.5 * size
        assert await store.read(search.find_leftover_tables) == []
        found = Log(store, log.lease, log.session, log.scope)
        assert len((await found.page("word")).items) == 20


def test_the_wait_for_the_lock_is_longer_than_any_hold() -> None:
    """B059"""
    assert opening.LOCK_TIMEOUT >= 100 * group_commit.MAX_BATCH_SECONDS


@pytest.mark.both_databases
async def test_the_disk_usage_is_reported_on_both_databases(store_url: str, tmp_path: Path) -> None:
    async with await open_store(store_url, home=tmp_path) as store:
        await store.write(Story(name="one").tell)
        await maintenance.update_index(store)
        found = await store.read(vacuum.measure_disk_usage)
        assert found.attachments == 1
        assert found.blobs == len("the file of one")
        assert 0 < found.index < found.total
        assert (found.free is None) == (not store_url.startswith("sqlite"))
        assert await maintenance.release_free_space(store) == 0
