"""Several processes on one file, some of them killed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from clew.store.sqlite import open_sqlite
from tests.integration.sqlite_jobs import (
    append,
    child,
    items,
    kill,
    line_of,
    make_log,
    numbers,
    start_child,
)

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.sqlite import SqliteStore


async def open_in(folder: Path) -> SqliteStore:
    return await open_sqlite(folder / "clew.db", run_dir=folder / "run")


async def test_six_processes_write_and_every_number_is_given_once(tmp_path: Path) -> None:
    async with await open_in(tmp_path) as store:
        await store.write(make_log)
        children = [start_child("write", tmp_path, f"p{n}", 8, 20) for n in range(6)]
        own = [await store.write(append, f"own-{n}") for n in range(100)]
        outputs = [
            (await asyncio.to_thread(process.communicate))[0].split() for process in children
        ]
        assert [process.returncode for process in children] == [0] * 6
        acknowledged = [item for output in outputs for item in output]
        assert len(acknowledged) == 6 * 8 * 20
        stored = await store.read(items)
        assert sorted(stored) == sorted(acknowledged + [f"own-{n}" for n in range(100)])
        assert await store.read(numbers) == list(range(1, len(stored) + 1))
        assert len(set(own)) == 100


async def test_acknowledged_messages_of_a_killed_process_are_stored(tmp_path: Path) -> None:
    async with await open_in(tmp_path) as store:
        await store.write(make_log)
    acknowledged: list[str] = []
    for n in range(5):
        with child("write", tmp_path, f"p{n}", 20, 100_000) as process:
            acknowledged += [line_of(process) for _ in range(200)]
            kill(process)
            assert process.stdout is not None
            # The last line may be cut.
            acknowledged += process.stdout.read().split("\n")[:-1]
    async with await open_in(tmp_path) as store:
        stored = await store.read(items)
        assert set(acknowledged) <= set(stored)
        assert await store.read(numbers) == list(range(1, len(stored) + 1))
        ((check,),) = await store.read(lambda t: t.fetch_all("PRAGMA integrity_check"))
        assert check == "ok"


async def test_stores_open_and_close_while_another_writes(tmp_path: Path) -> None:
    async with await open_in(tmp_path) as store:
        await store.write(make_log)
    # Between two writers nobody may have the file open: then the last one removes the log.
    with child("open_and_close", tmp_path, 20) as opener:
        for n in range(20):
            async with await open_in(tmp_path) as store:
                await asyncio.gather(*(store.write(append, f"{n}-{m}") for m in range(20)))
        assert line_of(opener) == "done"
    async with await open_in(tmp_path) as store:
        assert await store.read(numbers) == list(range(1, 401))


async def test_twenty_stores_at_once_while_another_writes(tmp_path: Path) -> None:
    async with await open_in(tmp_path) as store:
        await store.write(make_log)

        async def use(n: int) -> None:
            async with await open_in(tmp_path) as other:
                await other.write(append, f"other-{n}")
                assert f"other-{n}" in await other.read(items)

        async def write() -> None:
            for n in range(200):
                await store.write(append, f"own-{n}")

        await asyncio.gather(write(), *(use(n) for n in range(20)))
        assert await store.read(numbers) == list(range(1, 221))


async def test_a_second_store_in_the_process_does_not_cost_the_first_its_locks(
    tmp_path: Path,
) -> None:
    """POSIX locks: closing any other descriptor of the file would drop them for all connections."""
    async with await open_in(tmp_path):
        async with await open_in(tmp_path):
            pass
        with child("take_the_file", tmp_path) as process:
            assert line_of(process) == "refused"
    with child("take_the_file", tmp_path) as process:
        assert line_of(process) == "taken"


async def test_processes_that_create_the_store_at_once_all_succeed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    stores = await asyncio.gather(*(open_in(home) for _ in range(10)))
    await stores[0].write(make_log)
    assert await asyncio.gather(*(store.read(items) for store in stores)) == [[]] * 10
    await asyncio.gather(*(store.aclose() for store in stores))
