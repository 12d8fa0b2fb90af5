"""Many jobs in one transaction, on a real file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw
import pytest

from clew.clock import SystemClock
from clew.errors import ConstraintViolated, LeaseHeld, StoreUnavailable
from clew.store.sqlite.driver import Cursor, fetch_rows, new_cursor
from clew.store.sqlite.group_commit import GroupCommitter
from clew.store.sqlite.jobs import Job
from clew.store.sqlite.liveness import SqliteLiveness
from clew.store.sqlite.opening import open_writer, prepare_file
from clew.store.sqlite.tx import JobContext, SqliteTx
from tests.integration.sqlite_jobs import append, items, make_log, numbers, waiting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from clew.store.contract import Tx


class Bench:
    """Batches on a connection, without the thread."""

    def __init__(self, connection: apsw.Connection, folder: Path) -> None:
        self.connection = connection
        self.commits = 0
        self.surroundings = JobContext(SystemClock(), SqliteLiveness(folder))
        self.batches = GroupCommitter(connection, self.surroundings, begin, commit)
        connection.set_commit_hook(self._count)

    def run(self, *jobs: Job) -> int:
        return self.batches.run_batch(jobs)

    def read(self, job: Callable[[Tx], Any]) -> Any:
        reading = waiting(job)
        self.run(reading)
        assert reading.error is None
        return reading.value

    def _count(self) -> bool:
        self.commits += 1
        return False


def commit(cursor: Cursor) -> None:
    cursor.execute("COMMIT")


def begin(cursor: Cursor) -> None:
    cursor.execute("BEGIN IMMEDIATE")


def appending(item: str, **kwargs: Any) -> Job:
    return Job(append, (item,), kwargs)


@pytest.fixture
async def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    # On a busy machine a batch would be ended before its last job.
    monkeypatch.setattr("clew.store.sqlite.group_commit.MAX_BATCH_SECONDS", 60.0)
    prepare_file(tmp_path / "clew.db", run_dir=tmp_path / "run")
    connection = open_writer(tmp_path / "clew.db")
    bench = Bench(connection, tmp_path / "run")
    bench.run(waiting(make_log))
    bench.commits = 0
    yield bench
    connection.close()


async def test_all_jobs_of_a_batch_share_one_commit(bench: Bench) -> None:
    jobs = [appending(f"{n}") for n in range(100)]
    assert bench.run(*jobs) == 100
    assert bench.commits == 1
    assert [job.value for job in jobs] == list(range(1, 101))
    assert all(job.final for job in jobs)


async def test_no_outcome_is_final_before_the_commit(bench: Bench) -> None:
    jobs = [appending("first"), appending("second")]
    seen: list[bool] = []
    bench.connection.set_commit_hook(lambda: bool(seen.extend(job.final for job in jobs)))
    bench.run(*jobs)
    assert seen == [False, False]


async def test_a_failing_job_takes_nothing_with_it(bench: Bench) -> None:
    def fail_late(t: Tx) -> None:
        append(t, "never")
        raise LeaseHeld("c", holder="o")

    jobs = [appending("first"), waiting(fail_late), appending("second")]
    bench.run(*jobs)
    assert [type(job.error) for job in jobs] == [type(None), LeaseHeld, type(None)]
    assert bench.commits == 1
    assert bench.read(items) == ["first", "second"]
    assert bench.read(numbers) == [1, 2]


async def test_a_job_that_fails_in_the_database_takes_nothing_with_it(bench: Bench) -> None:
    jobs = [appending("one"), appending("one"), appending("two")]
    bench.run(*jobs)
    assert [type(job.error) for job in jobs] == [type(None), ConstraintViolated, type(None)]
    assert bench.read(items) == ["one", "two"]
    assert bench.read(numbers) == [1, 2]


@pytest.mark.parametrize("error", [StopIteration(), KeyboardInterrupt(), SystemExit(3)])
async def test_whatever_a_job_raises_is_its_own(bench: Bench, error: BaseException) -> None:
    def raises(_t: Tx) -> None:
        raise error

    jobs = [waiting(raises), appending("next")]
    bench.run(*jobs)
    assert [job.error for job in jobs] == [error, None]
    assert bench.read(items) == ["next"]


async def test_a_job_may_continue_after_an_error_that_it_expects(bench: Bench) -> None:
    def insist(t: Tx) -> int:
        try:
            return append(t, "taken")
        except ConstraintViolated:
            return append(t, "free")

    bench.run(appending("taken"), waiting(insist))
    assert bench.read(items) == ["taken", "free"]
    # The counter of the refused attempt belongs to the same job and stays.
    assert bench.read(numbers) == [1, 3]


async def test_a_batch_ends_early_when_its_time_is_over(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.store.sqlite.group_commit.MAX_BATCH_SECONDS", -1.0)
    jobs = [appending("first"), appending("second")]
    assert bench.run(*jobs) == 1
    assert [job.final for job in jobs] == [True, False]
    assert bench.read(items) == ["first"]


async def test_jobs_fail_clearly_while_another_process_holds_the_lock(
    bench: Bench, tmp_path: Path
) -> None:
    bench.connection.set_busy_timeout(0)
    other = apsw.Connection(str(tmp_path / "clew.db"))
    fetch_rows(other, "BEGIN IMMEDIATE")
    jobs = [appending("first"), appending("second")]
    assert bench.run(*jobs) == 2
    assert [type(job.error) for job in jobs] == [StoreUnavailable, StoreUnavailable]
    other.close()
    assert bench.read(items) == []


@pytest.mark.parametrize("verb", ["BEGIN", " commit", "End", "ROLLBACK TO x", "SAVEPOINT x"])
async def test_a_job_cannot_control_its_transaction(bench: Bench, verb: Any) -> None:
    job = waiting(lambda t: t.execute(verb))
    bench.run(job)
    assert isinstance(job.error, ValueError)


@pytest.mark.parametrize(
    ("sql", "constraint"),
    [
        ("INSERT INTO log (name, seq, item) VALUES ('a', 1, 'y')", "one_seq"),
        ("INSERT INTO log (name, seq, item) VALUES ('a', 2, 'x')", "one_item"),
        ("INSERT INTO log (name, seq, item) VALUES ('a', 0, 'y')", "seq > 0"),
        ("INSERT INTO log (name, seq, item) VALUES ('a', 2, NULL)", "log.item"),
        ("INSERT INTO log (name, seq, item) VALUES ('z', 2, 'y')", "FOREIGN KEY"),
        ("INSERT INTO counter VALUES ('a', 0)", "counter.name"),
        ("INSERT INTO odd VALUES (5)", "odd_parity"),
        ("INSERT INTO odd VALUES (13)", "no luck"),
    ],
)
async def test_a_violated_constraint_is_named(bench: Bench, sql: Any, constraint: str) -> None:
    def prepare_more(t: Tx) -> None:
        append(t, "x")
        t.execute(
            """
            CREATE TABLE odd (n INTEGER);
            CREATE UNIQUE INDEX odd_parity ON odd (n % 2) WHERE n < 10;
            CREATE TRIGGER luck BEFORE INSERT ON odd WHEN new.n = 13
            BEGIN SELECT RAISE(ABORT, 'no luck'); END;
            INSERT INTO odd VALUES (1)
            """
        )

    violating = waiting(lambda t: t.execute(sql))
    bench.run(waiting(prepare_more), violating)
    assert isinstance(violating.error, ConstraintViolated)
    assert violating.error.constraint == constraint


async def test_a_foreign_key_is_checked_by_the_statement_that_breaks_it(bench: Bench) -> None:
    """Also where only the first row of RETURNING is asked for."""

    def orphan(t: Tx) -> str:
        try:
            t.fetch_one(
                "INSERT INTO log (name, seq, item) VALUES ('z', 1, 'x'), ('z', 2, 'y') RETURNING id"
            )
        except ConstraintViolated as error:
            return error.constraint
        return "not noticed"

    assert bench.read(orphan) == "FOREIGN KEY"
    assert bench.read(lambda t: items(t, "z")) == []


async def test_a_time_is_the_same_throughout_a_job(bench: Bench) -> None:
    now, again = bench.read(lambda t: (t.now, t.now))
    assert now == again


async def test_rows_are_counted(bench: Bench) -> None:
    assert bench.read(lambda t: t.execute("UPDATE counter SET last = 5")) == 2
    assert bench.read(lambda t: t.execute("UPDATE counter SET last = 6 WHERE name = 'z'")) == 0
    assert bench.read(lambda t: t.execute("UPDATE counter SET last = 7 RETURNING name")) == 2


def test_a_handle_is_refused_after_its_transaction_was_lost(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "x.db"))
    fetch_rows(connection, "CREATE TABLE t (n INTEGER UNIQUE); INSERT INTO t VALUES (1); BEGIN")
    tx = SqliteTx(
        connection, new_cursor(connection), JobContext(SystemClock(), SqliteLiveness(tmp_path))
    )
    with pytest.raises(ConstraintViolated):
        tx.execute("INSERT OR ROLLBACK INTO t VALUES (1)")
    with pytest.raises(StoreUnavailable):
        tx.execute("INSERT INTO t VALUES (2)")
    with pytest.raises(StoreUnavailable):
        tx.fetch_one("SELECT 1")
    assert fetch_rows(connection, "SELECT n FROM t") == [(1,)]
    connection.close()
