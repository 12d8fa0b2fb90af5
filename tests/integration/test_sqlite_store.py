"""The store on a real file, with its real threads."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import apsw
import pytest
from anyio import to_thread
from structlog.testing import capture_logs

from clew.errors import ConstraintViolated, StoreError, StoreFull, StoreUnavailable
from clew.store.sqlite import SqliteStore, open_sqlite
from clew.store.sqlite.driver import fetch_rows
from clew.store.sqlite.group_commit import GroupCommitter
from clew.store.sqlite.jobs import Job
from clew.store.sqlite.writer import Writer
from clew.store.sqlite.writer_maintenance import WriterMaintenance
from tests.integration.sqlite_jobs import append, items, make_log, numbers
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from clew.store.contract import Tx


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with await open_sqlite(tmp_path / "clew.db", run_dir=tmp_path / "run") as store:
        await store.write(make_log)
        yield store


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class Gate:
    """A job that keeps its thread busy until it is let through."""

    def __init__(self) -> None:
        self._entered = threading.Event()
        self._open = threading.Event()

    def __call__(self, _t: Tx) -> None:
        self._entered.set()
        self._open.wait()

    async def entered(self) -> None:
        await to_thread.run_sync(self._entered.wait)

    def open(self) -> None:
        self._open.set()


async def test_a_read_sees_every_acknowledged_write(store: SqliteStore) -> None:
    for n in range(200):
        await store.write(append, f"{n}")
        assert len(await store.read(items)) == n + 1


async def test_many_writers_get_their_own_answers(store: SqliteStore) -> None:
    answers = await asyncio.gather(*(store.write(append, f"{n}") for n in range(1000)))
    assert answers == list(range(1, 1001))
    assert await store.read(items) == [f"{n}" for n in range(1000)]


async def test_the_jobs_of_one_batch_fail_alone(store: SqliteStore) -> None:
    gate = Gate()
    busy = asyncio.create_task(store.write(gate))
    await gate.entered()
    writes = [asyncio.create_task(store.write(append, item)) for item in "abacb"]
    await asyncio.sleep(0)
    gate.open()
    results = await asyncio.gather(*writes, return_exceptions=True)
    await busy
    assert [type(result) for result in results] == [
        int, int, ConstraintViolated, int, ConstraintViolated,
    ]  # fmt: skip
    assert await store.read(items) == ["a", "b", "c"]
    assert await store.read(numbers) == [1, 2, 3]


async def test_a_caller_cancelled_before_its_job_began_leaves_nothing(store: SqliteStore) -> None:
    gate = Gate()
    busy = asyncio.create_task(store.write(gate))
    await gate.entered()
    waiting = [asyncio.create_task(store.write(append, item)) for item in "abc"]
    await asyncio.sleep(0)
    waiting[1].cancel()
    await asyncio.sleep(0)
    gate.open()
    await asyncio.gather(busy, waiting[0], waiting[2])
    assert waiting[1].cancelled()
    assert await store.read(items) == ["a", "c"]


async def test_a_caller_cancelled_while_its_job_runs_disturbs_no_other(store: SqliteStore) -> None:
    gate = Gate()

    def slow_append(t: Tx, item: str) -> None:
        append(t, item)
        gate(t)

    slow = asyncio.create_task(store.write(slow_append, "a"))
    await gate.entered()
    other = asyncio.create_task(store.write(append, "b"))
    await asyncio.sleep(0)
    slow.cancel()
    await asyncio.sleep(0)
    gate.open()
    assert await other == 2
    assert await store.read(items) == ["a", "b"]


async def test_readers_do_not_wait_for_a_writer(store: SqliteStore) -> None:
    gate = Gate()
    await store.write(append, "before")

    def unfinished(t: Tx) -> None:
        append(t, "during")
        gate(t)

    busy = asyncio.create_task(store.write(unfinished))
    await gate.entered()
    assert await asyncio.gather(*(store.read(items) for _ in range(20))) == [["before"]] * 20
    gate.open()
    await busy
    assert await store.read(items) == ["before", "during"]


async def test_a_reader_keeps_its_snapshot_while_others_write(store: SqliteStore) -> None:
    gate = Gate()

    def read_twice(t: Tx) -> tuple[list[str], list[str]]:
        first = items(t)
        gate(t)
        return first, items(t)

    await store.write(append, "before")
    reading = asyncio.create_task(store.read(read_twice))
    await gate.entered()
    await store.write(append, "after")
    gate.open()
    assert await reading == (["before"], ["before"])
    assert await store.read(items) == ["before", "after"]


async def test_slow_readers_share_the_threads(store: SqliteStore) -> None:
    gates = [Gate() for _ in range(10)]
    reading = [asyncio.create_task(store.read(gate)) for gate in gates]
    await gates[0].entered()
    for gate in gates:
        gate.open()
    await asyncio.gather(*reading)
    names = [thread.name for thread in threading.enumerate()]
    assert 1 <= sum(name.startswith("clew-reader") for name in names) <= 4


async def test_a_reading_job_cannot_write(store: SqliteStore) -> None:
    with pytest.raises(StoreError, match="readonly"):
        await store.read(append, "a")
    assert await store.read(items) == []


async def test_an_error_of_a_reading_job_reaches_its_caller(store: SqliteStore) -> None:
    def raises(_t: Tx) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await store.read(raises)
    assert await store.read(items) == []


async def test_a_job_may_raise_what_no_future_takes(store: SqliteStore) -> None:
    def raises(_t: Tx) -> None:
        next(iter(()))

    for run in (store.write, store.read):
        with pytest.raises(RuntimeError, match="StopIteration"):
            await run(raises)


async def test_several_loops_share_one_store(store: SqliteStore) -> None:
    async def write_some(prefix: str) -> list[int]:
        return await asyncio.gather(*(store.write(append, f"{prefix}{n}") for n in range(100)))

    def in_own_loop(prefix: str) -> list[int]:
        return asyncio.run(write_some(prefix))

    answers = await asyncio.gather(
        write_some("a"), *(to_thread.run_sync(in_own_loop, prefix) for prefix in "bcd")
    )
    assert sorted(seq for answer in answers for seq in answer) == list(range(1, 401))


async def test_a_closed_event_loop_does_no_harm(store: SqliteStore) -> None:
    gate = Gate()

    def leave_behind() -> None:
        async def begin() -> None:
            task = asyncio.create_task(store.write(gate))
            await gate.entered()
            task.cancel()

        asyncio.run(begin())

    await to_thread.run_sync(leave_behind)
    gate.open()
    assert await store.write(append, "a") == 1


async def test_closing_finishes_what_was_accepted(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path / "clew.db", run_dir=tmp_path / "run")
    await store.write(make_log)
    writes = [asyncio.create_task(store.write(append, f"{n}")) for n in range(600)]
    reads = [asyncio.create_task(store.read(items)) for _ in range(20)]
    await asyncio.sleep(0)
    await store.aclose()
    assert await asyncio.gather(*writes) == list(range(1, 601))
    await asyncio.gather(*reads)
    for late in (store.write(append, "x"), store.read(items), store.check_available()):
        with pytest.raises(StoreUnavailable):
            await late
    await store.aclose()
    assert names_in(tmp_path) == ["clew.db", "run"]


async def test_closing_leaves_no_thread(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    async with await open_sqlite(tmp_path / "clew.db", run_dir=tmp_path / "run") as store:
        await store.read(lambda t: t.now)
    left = [thread.name for thread in threading.enumerate() if thread not in before]
    assert [name for name in left if name.startswith("clew-")] == []


class Fatal(Exception):
    """Errors that kill the writer."""


@pytest.fixture
def deaths(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Errors that kill the writer's thread at its next batches."""
    errors: list[Exception] = []
    run = GroupCommitter.run_batch

    def dying(batches: GroupCommitter, jobs: Sequence[Job]) -> int:
        if errors:
            raise errors.pop()
        return run(batches, jobs)

    monkeypatch.setattr(GroupCommitter, "run_batch", dying)
    return errors


async def test_a_writer_that_dies_fails_all_who_wait_and_starts_once_more(
    store: SqliteStore, deaths: list[Exception]
) -> None:
    gate = Gate()
    busy = asyncio.create_task(store.write(gate))
    await gate.entered()
    deaths.append(Fatal("a bug"))
    writes = [asyncio.create_task(store.write(append, f"{n}")) for n in range(600)]
    await asyncio.sleep(0)
    gate.open()
    results = await asyncio.gather(*writes, return_exceptions=True)
    await busy
    assert {type(result) for result in results} == {StoreUnavailable}
    assert await store.write(append, "a") == 1
    await store.check_available()


async def test_a_writer_that_dies_in_mid_transaction_leaves_nothing_of_it(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(_batches: GroupCommitter, _jobs: Sequence[Job]) -> int:
        raise Fatal("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(GroupCommitter, "_commit_batch", dying)
        with pytest.raises(StoreUnavailable, match="a bug"):
            await store.write(append, "lost")
    await store.write(append, "kept")
    assert await store.read(items) == ["kept"]


async def test_the_second_death_of_the_writer_is_final(
    store: SqliteStore, deaths: list[Exception]
) -> None:
    listener = store.watch_changes()
    assert await anext(listener) is None
    for _ in range(2):
        deaths.append(Fatal("a bug"))
        with pytest.raises(StoreUnavailable, match="a bug"):
            await store.write(append, "a")
    with pytest.raises(StoreUnavailable, match="a bug"):
        async for _ in listener:
            pass
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match="a bug"):
            await store.write(append, "a")
        with pytest.raises(StoreUnavailable, match="a bug"):
            await store.check_available()
    assert await store.read(items) == []


async def test_a_job_submitted_while_the_writer_ends_gets_an_error(
    tmp_path: Path, deaths: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Job(append, ("late",), {})
    lives: list[int] = []
    life = Writer._open_and_serve  # pyright: ignore[reportPrivateUsage]

    def watched(writer: Writer) -> Exception | None:
        lives.append(1)
        error = life(writer)
        if len(lives) == 2:
            writer.submit(late)
        return error

    monkeypatch.setattr(Writer, "_open_and_serve", watched)
    async with await open_sqlite(tmp_path / "clew.db", run_dir=tmp_path / "run") as store:
        for _ in range(2):
            deaths.append(Fatal("a bug"))
            with pytest.raises(StoreUnavailable):
                await store.write(items)
        with pytest.raises(StoreUnavailable):
            await late.future


async def test_a_writer_that_cannot_start_again_is_dead(
    store: SqliteStore, deaths: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: Path) -> None:
        raise apsw.CantOpenError("unable to open")

    monkeypatch.setattr("clew.store.sqlite.writer.open_writer", refuse)
    deaths.append(Fatal("a bug"))
    with pytest.raises(StoreUnavailable):
        await store.write(append, "a")
    # Its end may come a moment later; nobody who asks in between is left waiting.
    with pytest.raises(StoreUnavailable, match="unable to open"):
        await asyncio.gather(*(store.write(append, f"{n}") for n in range(10)))


async def test_a_check_does_not_grow_the_log(store: SqliteStore, tmp_path: Path) -> None:
    await store.write(append, "a")
    before = (tmp_path / "clew.db-wal").stat().st_size
    for _ in range(50):
        await store.check_available()
    assert (tmp_path / "clew.db-wal").stat().st_size == before


async def test_a_check_notices_that_the_file_is_gone(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "clew.db").rename(tmp_path / "elsewhere.db")
    with pytest.raises(StoreUnavailable, match="unable to open"):
        await store.read(items)  # by a reader that has just started
    with pytest.raises(StoreUnavailable, match="gone"):
        await store.check_available()
    (tmp_path / "clew.db").touch()
    with pytest.raises(StoreUnavailable, match="replaced"):
        await store.check_available()


async def test_a_check_notices_that_the_disk_is_full(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.store.sqlite.store._MIN_FREE_BYTES", 1 << 70)
    with pytest.raises(StoreFull):
        await store.check_available()


async def test_a_check_notices_that_writing_is_impossible(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.store.sqlite.writer_maintenance.LOCK_TIMEOUT", 0.0)
    other = apsw.Connection(str(tmp_path / "clew.db"))
    fetch_rows(other, "BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable):
        await store.check_available()
    other.close()
    await store.check_available()


async def test_a_long_log_is_written_back_and_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after a reader has kept it from being used again."""
    limit = 2_000_000
    monkeypatch.setattr("clew.store.sqlite.writer_maintenance.JOURNAL_LIMIT", limit)
    monkeypatch.setattr("clew.store.sqlite.writer_maintenance.CHECKPOINT_AT", 100)
    log = tmp_path / "clew.db-wal"
    gate = Gate()

    def hold(t: Tx) -> None:
        items(t)
        gate(t)

    async with await open_sqlite(tmp_path / "clew.db", run_dir=tmp_path / "run") as store:
        await store.write(make_log)
        reading = asyncio.create_task(store.read(hold))
        await gate.entered()
        for n in range(20):
            await store.write(append, f"{n}", size=200_000)
        assert log.stat().st_size > limit
        gate.open()
        await reading
        await until(lambda: log.stat().st_size < limit, store)
        seqs = await store.read(numbers)
        assert seqs == list(range(1, len(seqs) + 1))


async def until(reached: Callable[[], bool], store: SqliteStore) -> None:
    """Write until something has come true."""
    n = 0
    while not reached():
        await store.write(append, f"until-{n}", size=100_000)
        n += 1


async def test_a_quiet_store_writes_its_log_back(store: SqliteStore, tmp_path: Path) -> None:
    await store.write(append, "a", size=100_000)
    other = apsw.Connection(str(tmp_path / "clew.db"))
    fetch_rows(other, "SELECT count(*) FROM log")

    def written_back() -> bool:
        total, done = other.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
        return 0 < total == done

    await wait_until(written_back, pause=0.05)
    other.close()


async def test_a_log_that_cannot_be_written_back_is_no_reason_to_die(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.store.sqlite.writer_maintenance.CHECKPOINT_AT", 1)
    monkeypatch.setattr("clew.store.sqlite.writer_maintenance.apsw.SQLITE_CHECKPOINT_PASSIVE", 77)
    with capture_logs() as logs:
        async with await open_sqlite(tmp_path / "clew.db", run_dir=tmp_path / "run") as store:
            await store.write(make_log)
            for n in range(20):
                await store.write(append, f"{n}", size=20_000)
            assert len(await store.read(items)) == 20
    assert {log["event"] for log in logs} == {"log_not_written_back"}


async def test_a_writer_waits_for_another_process_and_listens_meanwhile(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = threading.Semaphore(0)
    look = WriterMaintenance.poll_changes

    def counted(tending: WriterMaintenance) -> None:
        look(tending)
        looks.release()

    monkeypatch.setattr(WriterMaintenance, "poll_changes", counted)
    other = apsw.Connection(str(tmp_path / "clew.db"))
    fetch_rows(other, "BEGIN IMMEDIATE")
    waiting = asyncio.create_task(store.write(append, "ours"))
    for _ in range(3):
        await to_thread.run_sync(looks.acquire)
    assert not waiting.done()
    fetch_rows(other, "UPDATE counter SET last = 7")
    fetch_rows(other, "COMMIT")
    other.close()
    assert await waiting == 8


async def test_times_come_from_the_clock(tmp_path: Path) -> None:
    class Stopped:
        def now(self) -> datetime:
            return datetime(2026, 1, 1, tzinfo=UTC)

        def monotonic(self) -> float:
            return 0.0

    async with await open_sqlite(
        tmp_path / "clew.db", run_dir=tmp_path / "run", clock=Stopped()
    ) as store:
        assert await store.write(lambda t: t.now) == 1_767_225_600_000
        assert await store.read(lambda t: t.now) == 1_767_225_600_000
