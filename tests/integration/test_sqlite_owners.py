"""Liveness of owners on SQLite, with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from clew.errors import StoreUnavailable
from clew.store.sqlite import SqliteStore, open_sqlite
from clew.store.sqlite.liveness import SqliteLiveness
from tests.integration.sqlite_jobs import child, kill, line_of
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with await open_sqlite(tmp_path / "clew.db", run_dir=tmp_path / "run") as store:
        yield store


async def alive(store: SqliteStore, owner: str) -> bool:
    """The answer of a writing and of a reading job, which is the same."""
    answer = await store.write(lambda t: t.is_alive(owner))
    assert await store.read(lambda t: t.is_alive(owner)) == answer
    return answer


async def test_an_unregistered_owner_is_dead_and_stays_unknown(
    store: SqliteStore, tmp_path: Path
) -> None:
    assert not await alive(store, "own_1")
    assert list((tmp_path / "run").iterdir()) == []


async def test_a_registered_owner_is_alive_until_its_store_is_closed(
    store: SqliteStore, tmp_path: Path
) -> None:
    other = await open_sqlite(tmp_path / "clew.db", run_dir=tmp_path / "run")
    await other.register_owner("own_1")
    await other.register_owner("own_1")
    assert await alive(other, "own_1")
    assert await alive(store, "own_1")
    await other.aclose()
    assert not await alive(store, "own_1")
    assert list((tmp_path / "run").iterdir()) == []


async def test_asking_does_not_take_the_lock_away(store: SqliteStore, tmp_path: Path) -> None:
    """POSIX locks end when any descriptor of the file is closed in the process."""
    other = await open_sqlite(tmp_path / "clew.db", run_dir=tmp_path / "run")
    await store.register_owner("own_1")
    for _ in range(10):
        assert await alive(other, "own_1")
    (tmp_path / "run" / "own_1.lock").read_bytes()
    await other.aclose()
    with child("own", tmp_path, "own_2") as process:
        line_of(process)
        assert await alive(store, "own_2")
    assert not SqliteLiveness(tmp_path / "run").is_alive("own_2")
    assert SqliteLiveness(tmp_path / "run").is_alive("own_1")


async def test_a_killed_process_is_dead_at_once(store: SqliteStore, tmp_path: Path) -> None:
    with child("own", tmp_path, "own_1") as process:
        assert line_of(process) == "registered"
        assert await alive(store, "own_1")
        kill(process)
        assert not await alive(store, "own_1")


async def test_a_stopped_process_lives(store: SqliteStore, tmp_path: Path) -> None:
    with child("own", tmp_path, "own_1") as process:
        line_of(process)
        process.send_signal(signal.SIGSTOP)
        assert await alive(store, "own_1")


async def test_a_process_that_ends_well_takes_its_lock_along(
    store: SqliteStore, tmp_path: Path
) -> None:
    with child("own", tmp_path, "own_1") as process:
        line_of(process)
        process.communicate("\n")
        assert process.returncode == 0
    assert not await alive(store, "own_1")
    assert list((tmp_path / "run").iterdir()) == []


async def test_a_forked_child_does_not_keep_its_dead_parent_alive(
    store: SqliteStore, tmp_path: Path
) -> None:
    with child("own_and_fork", tmp_path, "own_1") as process:
        forked = int(line_of(process))
        assert await alive(store, "own_1")
        process.send_signal(signal.SIGKILL)
        process.wait()
        try:
            # The child lets go when it first runs, which may be after its parent's death, and
            # between two looks.
            await wait_until(lambda: store.read(lambda t: not t.is_alive("own_1")), "own_1 is dead")
            os.kill(forked, 0)
        finally:
            os.kill(forked, signal.SIGKILL)


async def test_a_forked_child_that_ends_does_not_take_the_lock_along(
    store: SqliteStore, tmp_path: Path
) -> None:
    with child("own_and_fork", tmp_path, "own_1") as process:
        os.kill(int(line_of(process)), signal.SIGKILL)
        assert await alive(store, "own_1")


async def test_registering_clears_away_the_dead_and_spares_the_living(
    store: SqliteStore, tmp_path: Path
) -> None:
    with child("own", tmp_path, "own_1") as dying, child("own", tmp_path, "own_2") as living:
        line_of(dying)
        line_of(living)
        kill(dying)
        await store.register_owner("own_3")
        left = sorted(path.name for path in (tmp_path / "run").iterdir())
        assert left == ["own_2.lock", "own_3.lock"]
        assert [await alive(store, f"own_{n}") for n in (1, 2, 3)] == [False, True, True]


async def test_concurrent_liveness_checks_do_not_mislead_each_other(tmp_path: Path) -> None:
    """The lock that one takes to ask must not look to another like the owner's."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "dead.lock").touch()
    start = threading.Barrier(4)

    def ask() -> list[bool]:
        start.wait()
        return [SqliteLiveness(folder).is_alive("dead") for _ in range(500)]

    answers = await asyncio.gather(*(asyncio.to_thread(ask) for _ in range(4)))
    assert not any(answer for own in answers for answer in own)


async def test_a_registering_owner_is_never_seen_dead(tmp_path: Path) -> None:
    """Its file appears with its lock, so that nobody clears it away or takes its leases over."""
    folder = tmp_path / "run"
    folder.mkdir()

    def come_and_go(first: int) -> None:
        for n in range(100):
            owners = SqliteLiveness(folder)
            owners.register_owner(f"own_{first + n}")
            assert (folder / f"own_{first + n}.lock").exists()
            assert SqliteLiveness(folder).is_alive(f"own_{first + n}")
            owners.release_all()

    await asyncio.gather(*(asyncio.to_thread(come_and_go, 1000 * n) for n in range(4)))
    assert list(folder.iterdir()) == []


async def test_an_owner_that_cannot_be_registered_is_reported(
    store: SqliteStore, tmp_path: Path
) -> None:
    (tmp_path / "run").rmdir()
    with pytest.raises(StoreUnavailable, match="own_1"):
        await store.register_owner("own_1")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "own_2.lock").mkdir()
    with pytest.raises(StoreUnavailable, match="own_2"):
        await store.register_owner("own_2")
    assert not await alive(store, "own_1")
    await store.register_owner("own_1")
    assert await alive(store, "own_1")


@pytest.mark.parametrize("owner", ["", "../x", "a/b", "a\n"])
async def test_a_name_cannot_lead_out_of_the_folder(store: SqliteStore, owner: str) -> None:
    with pytest.raises(ValueError, match="no name of an owner"):
        await store.register_owner(owner)


async def test_an_owner_that_cannot_be_examined_counts_as_alive(
    store: SqliteStore, tmp_path: Path
) -> None:
    (tmp_path / "run" / "odd.lock").mkdir()
    assert await alive(store, "odd")
