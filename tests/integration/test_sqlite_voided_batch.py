"""
Batches that SQLite rolls back by itself, for every job k of n.

Nothing that is acknowledged is missing, nothing that failed is there, and nobody else pays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw
import pytest

from clew.clock import SystemClock
from clew.errors import ConstraintViolated, LeaseHeld, StoreError, StoreFull, StoreUnavailable
from clew.store.sqlite import group_commit
from clew.store.sqlite.driver import Cursor, fetch_rows
from clew.store.sqlite.group_commit import GroupCommitter
from clew.store.sqlite.jobs import Job
from clew.store.sqlite.liveness import SqliteLiveness
from clew.store.sqlite.opening import open_writer, prepare_file
from clew.store.sqlite.tx import JobContext
from tests.integration.sqlite_jobs import append, child, items, line_of, make_log, numbers, waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from clew.store.contract import Tx

ALL_K_OF_N = [(k, n) for n in range(1, 9) for k in range(1, n + 1)]
BIG = 1_000_000


def begin(cursor: Cursor) -> None:
    cursor.execute("BEGIN IMMEDIATE")


def commit(cursor: Cursor) -> None:
    cursor.execute("COMMIT")


@pytest.fixture(autouse=True)
def long_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes longer for a batch than it may last."""
    monkeypatch.setattr(group_commit, "MAX_BATCH_SECONDS", 60.0)


def batches_on(connection: apsw.Connection, folder: Path) -> GroupCommitter:
    batches = GroupCommitter(
        connection, JobContext(SystemClock(), SqliteLiveness(folder)), begin, commit
    )
    batches.run_batch([waiting(make_log)])
    return batches


def fill_the_disk(t: Tx, item: str) -> None:
    append(t, item, size=BIG)


def swallow_the_error(t: Tx, item: str) -> None:
    """A job that should let the error pass, and instead goes on."""
    try:
        append(t, item, size=BIG)
    except StoreError:
        append(t, item)


def fail_after_the_error(t: Tx, item: str) -> None:
    try:
        append(t, item, size=BIG)
    except StoreError:
        raise LeaseHeld("c", holder="o") from None


def check_outcomes(batches: GroupCommitter, jobs: list[Job]) -> None:
    """Exactly the acknowledged writes are stored, once, in order and without gaps."""
    assert all(job.final for job in jobs)
    look = waiting(lambda t: (items(t), numbers(t)))
    batches.run_batch([look])
    stored, seqs = look.value
    acknowledged = [job.args[0] for job in jobs if job.error is None]
    assert stored == acknowledged
    assert seqs == list(range(1, len(acknowledged) + 1))
    assert [job.value for job in jobs if job.error is None] == seqs


@pytest.fixture
def small(tmp_path: Path) -> Iterator[apsw.Connection]:
    """A connection to a file that cannot grow by much."""
    prepare_file(tmp_path / "clew.db", run_dir=tmp_path / "run")
    connection = open_writer(tmp_path / "clew.db")
    fetch_rows(connection, "PRAGMA max_page_count = 40")
    yield connection
    connection.close()


@pytest.mark.parametrize("filling", [fill_the_disk, swallow_the_error, fail_after_the_error])
@pytest.mark.parametrize(("k", "n"), ALL_K_OF_N)
async def test_a_full_disk_at_job_k_of_n_costs_only_that_job(
    small: apsw.Connection, tmp_path: Path, k: int, n: int, filling: Callable[[Tx, str], None]
) -> None:
    batches = batches_on(small, tmp_path)
    voided: list[int] = []
    small.set_rollback_hook(lambda: voided.append(1))
    jobs = [Job(filling if j == k else append, (f"{j}",), {}) for j in range(1, n + 1)]
    assert batches.run_batch(jobs) == n
    assert voided, "SQLite kept the transaction: the test shows nothing"
    assert [j for j, job in enumerate(jobs, 1) if job.error] == [k]
    wanted = LeaseHeld if filling is fail_after_the_error else StoreError
    assert isinstance(jobs[k - 1].error, wanted)
    if filling is fill_the_disk:
        assert isinstance(jobs[k - 1].error, StoreFull)
    check_outcomes(batches, jobs)


@pytest.mark.parametrize(("k", "n"), ALL_K_OF_N)
async def test_a_refusal_that_rests_on_lost_writes_is_decided_again(
    small: apsw.Connection, tmp_path: Path, k: int, n: int
) -> None:
    """Every job after the first is refused for what the first wrote, until job k voids it all."""

    def only_once(t: Tx, item: str) -> int:
        if items(t):
            raise LeaseHeld("c", holder=items(t)[0])
        return append(t, item)

    batches = batches_on(small, tmp_path)
    jobs = [Job(only_once, (f"{j}",), {}) for j in range(1, n + 1)]
    jobs.insert(k, Job(fill_the_disk, ("full",), {}))
    batches.run_batch(jobs)
    assert isinstance(jobs[k].error, StoreFull)
    assert [job.args[0] for job in jobs if job.error is None] == ["1"]
    check_outcomes(batches, jobs)


async def test_a_full_disk_that_spares_the_transaction_costs_only_that_job(
    small: apsw.Connection, tmp_path: Path
) -> None:
    """A statement of several rows is undone alone; then the batch goes on."""

    def fill_with_rows(t: Tx, item: str) -> None:
        append(t, item)
        t.execute(
            "WITH RECURSIVE numbers (value) AS "
            "(SELECT 1 UNION ALL SELECT value + 1 FROM numbers WHERE value < 10000) "
            "INSERT INTO log (name, seq, item, body) "
            "SELECT 'b', value, 'x' || value, zeroblob(1000) FROM numbers"
        )

    batches = batches_on(small, tmp_path)
    voided: list[int] = []
    small.set_rollback_hook(lambda: voided.append(1))
    jobs = [Job(append, ("1",), {}), Job(fill_with_rows, ("2",), {}), Job(append, ("3",), {})]
    batches.run_batch(jobs)
    assert not voided
    assert isinstance(jobs[1].error, StoreFull)
    check_outcomes(batches, jobs)


async def test_a_refusal_falls_with_the_write_that_it_rests_on(
    small: apsw.Connection, tmp_path: Path
) -> None:
    """The first job does not repeat what made the second fail: the second must not stay refused."""
    runs: list[int] = []

    def only_at_first(t: Tx, item: str) -> None:
        runs.append(1)
        if len(runs) > 1:
            raise LeaseHeld("c", holder="o")
        append(t, item)

    def after_nobody(t: Tx, item: str) -> int:
        if items(t):
            raise LeaseHeld("c", holder=items(t)[0])
        return append(t, item)

    batches = batches_on(small, tmp_path)
    jobs = [
        Job(only_at_first, ("1",), {}),
        Job(after_nobody, ("2",), {}),
        Job(fill_the_disk, ("3",), {}),
    ]
    batches.run_batch(jobs)
    assert [type(job.error) for job in jobs] == [LeaseHeld, type(None), StoreFull]
    check_outcomes(batches, jobs)


async def test_jobs_fail_clearly_while_the_lock_is_held_after_a_voided_batch(
    small: apsw.Connection, tmp_path: Path
) -> None:
    batches = batches_on(small, tmp_path)
    grants = iter([True, True, False])

    def begin_sometimes(cursor: Cursor) -> None:
        if not next(grants, True):
            raise apsw.BusyError("database is locked")
        begin(cursor)

    batches = GroupCommitter(
        small, JobContext(SystemClock(), SqliteLiveness(tmp_path)), begin_sometimes, commit
    )
    jobs = [Job(append if j != 2 else fill_the_disk, (f"{j}",), {}) for j in range(1, 6)]
    batches.run_batch(jobs)
    unavailable = [StoreUnavailable] * 3
    assert [type(job.error) for job in jobs] == [type(None), StoreFull, *unavailable]
    check_outcomes(batches, jobs)


class FailingCommits(apsw.VFS):
    """A disk on which the write-ahead log cannot be written during some commits."""

    def __init__(self, error: type[apsw.Error]) -> None:
        super().__init__("failing", "")
        self.error = error
        self.failing: frozenset[int] = frozenset()
        self.commit = 0

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802 - the name is apsw's
        return _File(self, name, flags)

    def count(self) -> bool:
        self.commit += 1
        return False


class _File(apsw.VFSFile):
    def __init__(self, disk: FailingCommits, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self.disk = disk
        self.is_log = bool(flags[0] & apsw.SQLITE_OPEN_WAL)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802 - the name is apsw's
        if self.is_log and self.disk.commit in self.disk.failing:
            raise self.disk.error
        super().xWrite(data, offset)  # pyright: ignore[reportUnknownMemberType]


@pytest.fixture(params=[apsw.FullError, apsw.IOError])
def disk(request: pytest.FixtureRequest) -> Iterator[FailingCommits]:
    disk = FailingCommits(request.param)
    yield disk
    disk.unregister()


@pytest.fixture
def on_failing_disk(disk: FailingCommits, tmp_path: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(tmp_path / "clew.db"), vfs="failing")
    assert fetch_rows(connection, "PRAGMA journal_mode = WAL") == [("wal",)]
    fetch_rows(connection, "PRAGMA synchronous = FULL")
    connection.set_commit_hook(disk.count)
    yield connection
    connection.close()


@pytest.mark.parametrize(("k", "n"), ALL_K_OF_N)
async def test_a_commit_that_fails_is_repeated_job_by_job(
    on_failing_disk: apsw.Connection, disk: FailingCommits, tmp_path: Path, k: int, n: int
) -> None:
    """The commit of the batch fails, and among those of the single jobs the one of job k."""
    batches = batches_on(on_failing_disk, tmp_path)
    disk.commit, disk.failing = 0, frozenset({1, 1 + k})
    jobs = [Job(append, (f"{j}",), {}) for j in range(1, n + 1)]
    assert batches.run_batch(jobs) == n
    assert disk.commit == 1 + n
    assert [j for j, job in enumerate(jobs, 1) if job.error] == [k]
    assert isinstance(jobs[k - 1].error, StoreError)
    check_outcomes(batches, jobs)


@pytest.mark.parametrize(("k", "n"), ALL_K_OF_N)
async def test_a_constraint_that_only_the_commit_checks_costs_only_the_guilty(
    small: apsw.Connection, tmp_path: Path, k: int, n: int
) -> None:
    def with_orphan(t: Tx, item: str) -> None:
        append(t, item)
        t.execute("INSERT INTO promise VALUES ('nobody')")

    batches = batches_on(small, tmp_path)
    promise: Any = "CREATE TABLE promise (p REFERENCES counter DEFERRABLE INITIALLY DEFERRED)"
    batches.run_batch([waiting(lambda t: t.execute(promise))])
    jobs = [Job(with_orphan if j == k else append, (f"{j}",), {}) for j in range(1, n + 1)]
    batches.run_batch(jobs)
    assert [j for j, job in enumerate(jobs, 1) if job.error] == [k]
    assert isinstance(jobs[k - 1].error, ConstraintViolated)
    check_outcomes(batches, jobs)


async def test_a_limit_of_the_system_is_met_and_left_behind(tmp_path: Path) -> None:
    prepare_file(tmp_path / "clew.db", run_dir=tmp_path / "run")
    connection = open_writer(tmp_path / "clew.db")
    batches_on(connection, tmp_path)
    connection.close()
    with child("fill_quota", tmp_path) as process:
        assert line_of(process) == "done"
