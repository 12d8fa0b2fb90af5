"""Jobs on PostgreSQL: what is atomic, what is run again, and which error arrives."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from clew.clock import to_millis
from clew.errors import (
    ConstraintViolated,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreUnavailable,
    TitleTaken,
)
from clew.store.postgres import Limits, open_postgres
from tests.integration import postgres_jobs as jobs
from tests.integration.postgres_proxy import BlackHole, CuttingProxy, listening

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from clew.store.contract import Tx
    from clew.store.postgres import PostgresStore

pytestmark = pytest.mark.postgres

BRIEF = Limits(retry_timeout=0.3, queue_timeout=0.3, max_conflicts=3)


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    async with await open_postgres(postgres_url) as store:
        await store.write(jobs.make_tables)
        yield store


@asynccontextmanager
async def cut(
    url: str, limits: Limits | None = None
) -> AsyncGenerator[tuple[PostgresStore, CuttingProxy]]:
    """A store behind a proxy that cuts connections at COMMIT."""
    proxy = CuttingProxy(url)
    async with (
        listening(proxy.handle, url) as through,
        await open_postgres(through, limits=limits) as store,
    ):
        await store.write(jobs.make_tables)
        yield store, proxy


def fail_with(t: Tx, state: str) -> None:
    """Have the server report an error."""
    t.execute("SELECT set_config('clew.state', $1, true)", state)
    t.execute(
        """
        DO $$ BEGIN
            RAISE EXCEPTION 'made up' USING ERRCODE = current_setting('clew.state');
        END $$
        """
    )


async def test_writes_of_a_job_that_raises_are_rolled_back(store: PostgresStore) -> None:
    def job(t: Tx) -> None:
        jobs.add(t, "a")
        raise TitleTaken("a")

    with pytest.raises(TitleTaken):
        await store.write(job)
    assert await store.read(jobs.count) == 0


async def test_a_job_that_does_nothing_and_one_that_only_wakes_succeed(
    store: PostgresStore,
) -> None:
    assert await store.write(lambda t: 1) == 1
    await store.write(lambda t: t.notify("x"))
    assert await store.read(lambda t: 2) == 2


async def test_a_script_of_several_statements_is_one_transaction(store: PostgresStore) -> None:
    def job(t: Tx) -> None:
        t.execute("CREATE TABLE a (id @ID, b @BYTES); CREATE TABLE b (id @ID); SELECT 1/0")

    with pytest.raises(StoreError, match="division by zero"):
        await store.write(job)
    assert (
        await store.read(lambda t: t.fetch_all("SELECT FROM pg_tables WHERE tablename = 'b'")) == []
    )


async def test_a_violated_constraint_arrives_with_its_name(store: PostgresStore) -> None:
    def job(t: Tx) -> None:
        for _ in range(2):
            t.execute("INSERT INTO note (id) VALUES ('a')")

    with pytest.raises(ConstraintViolated) as caught:
        await store.write(job)
    assert caught.value.constraint == "note_pkey"


async def test_a_constraint_that_is_checked_at_the_commit_arrives_too(
    store: PostgresStore,
) -> None:
    await store.write(
        lambda t: t.execute(
            "CREATE TABLE child (id TEXT REFERENCES note DEFERRABLE INITIALLY DEFERRED)"
        )
    )
    with pytest.raises(ConstraintViolated) as caught:
        await store.write(lambda t: t.execute("INSERT INTO child VALUES ('nobody')"))
    assert caught.value.constraint == "child_id_fkey"


async def test_a_job_may_turn_a_violated_constraint_into_an_error_of_its_own(
    store: PostgresStore,
) -> None:
    await store.write(jobs.add, "a")

    def job(t: Tx) -> None:
        try:
            t.execute("INSERT INTO note (id) VALUES ('a')")
        except ConstraintViolated as error:
            raise TitleTaken("a") from error

    with pytest.raises(TitleTaken):
        await store.write(job)


async def test_a_job_that_swallows_an_error_stores_nothing_and_raises_it(
    store: PostgresStore,
) -> None:
    def job(t: Tx) -> str:
        jobs.add(t, "a")
        for _ in range(2):
            with pytest.raises(StoreError, match="division by zero"):
                t.execute("SELECT 1/0")
        return "done"

    with pytest.raises(StoreError, match="division by zero"):
        await store.write(job)
    assert await store.read(jobs.count) == 0


@pytest.mark.parametrize(
    ("state", "error"),
    [("53100", StoreFull), ("XX001", StoreDamaged), ("XX002", StoreDamaged), ("P0001", StoreError)],
)
async def test_each_error_of_the_server_has_its_kind(
    store: PostgresStore, state: str, error: type[StoreError]
) -> None:
    with pytest.raises(error, match="made up") as caught:
        await store.write(fail_with, state)
    assert type(caught.value) is error


@pytest.mark.parametrize("state", ["40001", "40P01", "55P03", "57014", "57P01", "26000", "08006"])
async def test_a_passing_error_runs_the_job_again_from_its_start(
    store: PostgresStore, state: str
) -> None:
    runs: list[int] = []

    def job(t: Tx) -> int:
        found = jobs.add(t, f"run {len(runs)}")
        runs.append(found)
        if len(runs) < 3:
            fail_with(t, state)
        return found

    assert await store.write(job) == 1
    assert runs == [1, 1, 1]
    assert await store.read(jobs.names) == ["run 2"]


async def test_an_error_that_does_not_pass_ends_as_unavailable(postgres_url: str) -> None:
    async with await open_postgres(postgres_url, limits=BRIEF) as store:
        for state in ("40001", "57P01"):
            with pytest.raises(StoreUnavailable, match="nothing was stored"):
                await store.write(fail_with, state)


async def test_two_jobs_that_lock_each_other_out_both_succeed(store: PostgresStore) -> None:
    meeting = threading.Barrier(2)
    met: set[str] = set()

    def job(t: Tx, first: str, second: str) -> None:
        t.execute("SET LOCAL deadlock_timeout = '20ms'")
        jobs.increase(t, first)
        if first not in met:
            met.add(first)
            meeting.wait(20)
        jobs.increase(t, second)

    for name in ("a", "b"):
        await store.write(jobs.add, name)
    await asyncio.gather(store.write(job, "a", "b"), store.write(job, "b", "a"))
    assert await store.read(jobs.value, "a") == await store.read(jobs.value, "b") == 2


async def test_fifty_writers_on_one_row_lose_no_update(store: PostgresStore) -> None:
    await store.write(jobs.add, "a")

    async def writer() -> None:
        for _ in range(10):
            await store.write(jobs.increase, "a")

    await asyncio.gather(*(writer() for _ in range(50)))
    assert await store.read(jobs.value, "a") == 500


async def test_a_job_whose_connection_breaks_in_its_middle_runs_again(
    store: PostgresStore,
) -> None:
    runs: list[int] = []

    def job(t: Tx) -> int:
        runs.append(jobs.add(t, "a"))
        if len(runs) == 1:
            jobs.break_connection(t)
        return jobs.count(t)

    assert await store.write(job) == 1
    assert runs == [1, 1]


async def test_a_job_that_breaks_every_connection_is_given_up(store: PostgresStore) -> None:
    runs: list[None] = []

    def job(t: Tx) -> None:
        runs.append(None)
        jobs.break_connection(t)

    with pytest.raises(StoreUnavailable, match="nothing was stored"):
        await store.write(job)
    assert len(runs) == 1 + Limits().max_losses
    assert await store.write(jobs.add, "a") == 1


async def test_idle_connections_that_broke_are_replaced_unseen(store: PostgresStore) -> None:
    for job in (jobs.add, jobs.add):
        await store.write(job, "a")
        await store.read(jobs.count)
        await store.write(jobs.terminate, "")
        assert await store.read(jobs.count) == 1


@pytest.mark.parametrize("plan", [["lose"], ["swallow"], ["swallow", "lose", "swallow"]])
@pytest.mark.parametrize("wakes", [False, True])
async def test_a_connection_lost_in_commit_doubles_and_loses_nothing(
    postgres_url: str, plan: list[str], wakes: bool
) -> None:
    def job(t: Tx, name: str) -> int:
        if wakes:
            t.notify(name)
        return jobs.add(t, name)

    async with cut(postgres_url) as (store, proxy):
        proxy.plan = list(plan)
        assert await store.write(job, "a") == 1
        assert proxy.plan == []
        assert await store.write(job, "b") == 2
        assert await store.read(jobs.names) == ["a", "b"]


async def test_a_note_that_a_lost_commit_stored_is_no_violated_constraint(
    postgres_url: str,
) -> None:
    """The old backend may still be committing while the job already runs again."""
    looks: list[bool] = []

    def job(t: Tx) -> str:
        found = t.fetch_one("SELECT id FROM note WHERE id = 'a'") is not None
        looks.append(found)
        # The second run looked before the first one's commit could be seen.
        if len(looks) < 3:
            t.execute("INSERT INTO note (id) VALUES ('a')")
        return "stored"

    async with cut(postgres_url) as (store, proxy):
        proxy.plan = ["swallow"]
        assert await store.write(job) == "stored"
        assert looks == [False, True, True]
        assert await store.read(jobs.names) == ["a"]


async def test_an_unknown_outcome_says_that_it_may_have_been_stored(postgres_url: str) -> None:
    async with cut(postgres_url, BRIEF) as (store, proxy):
        changes = store.watch_changes()
        proxy.plan = ["swallow"] * 50
        with pytest.raises(StoreUnavailable, match="may have been stored"):
            await store.write(jobs.add, "a")
        assert await anext(changes) is None


async def test_a_reader_sees_one_snapshot_and_every_acknowledged_commit(
    store: PostgresStore,
) -> None:
    first, second = threading.Event(), threading.Event()

    def job(t: Tx) -> tuple[int, int]:
        before = jobs.count(t)
        first.set()
        second.wait(20)
        return before, jobs.count(t)

    reading = asyncio.create_task(store.read(job))
    await asyncio.to_thread(first.wait)
    await store.write(jobs.add, "a")
    second.set()
    assert await reading == (0, 0)
    assert await store.read(jobs.count) == 1


async def test_a_reader_is_not_kept_waiting_by_writers_that_hold_every_connection(
    store: PostgresStore,
) -> None:
    done = threading.Event()

    def job(t: Tx, name: str) -> None:
        jobs.add(t, name)
        done.wait(20)

    writing = [asyncio.create_task(store.write(job, str(n))) for n in range(Limits().writers)]
    assert await store.read(jobs.count) == 0
    done.set()
    await asyncio.gather(*writing)


async def test_a_read_that_writes_fails(store: PostgresStore) -> None:
    with pytest.raises(StoreError, match="only reads"):
        await store.read(jobs.add, "a")
    assert await store.read(jobs.count) == 0


async def test_waiting_for_a_connection_has_a_bound(postgres_url: str) -> None:
    limits = Limits(writers=1, queue_timeout=0.1)
    done = threading.Event()
    async with await open_postgres(postgres_url, limits=limits) as store:
        holding = asyncio.create_task(store.write(lambda t: done.wait(20)))
        await asyncio.sleep(0)
        with pytest.raises(StoreUnavailable, match="all 1 connections were busy"):
            await store.write(jobs.pid)
        done.set()
        await holding
        await store.write(jobs.pid)


async def test_a_cancelled_caller_leaves_its_job_running_to_its_end(store: PostgresStore) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def job(t: Tx) -> None:
        jobs.add(t, "a")
        begun.set()
        go_on.wait(20)

    writing = asyncio.create_task(store.write(job))
    await asyncio.to_thread(begun.wait)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    go_on.set()
    await jobs.until(store, lambda t: jobs.count(t) == 1)


async def test_the_time_is_the_servers_and_stands_still_within_a_job(store: PostgresStore) -> None:
    def job(t: Tx) -> list[int]:
        row = t.fetch_one("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)")
        assert row is not None
        t.execute("SELECT pg_sleep(0.01)")
        return [t.now, row[0], t.now]

    for run in (store.write, store.read):
        first, server, second = await run(job)
        assert first == second
        assert abs(first - server) < 1000


async def test_a_clock_that_was_handed_in_replaces_the_servers(postgres_url: str) -> None:
    class Clock:
        def now(self) -> datetime:
            return datetime(2030, 1, 1, tzinfo=UTC)

        def monotonic(self) -> float:
            return 0.0

    async with await open_postgres(postgres_url, clock=Clock()) as store:
        assert await store.write(lambda t: (t.fetch_all("SELECT 1"), t.now)[1]) == to_millis(
            Clock().now()
        )


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
async def test_a_text_that_cannot_be_stored_says_so(store: PostgresStore, text: str) -> None:
    with pytest.raises(StoreError, match="cannot store a value"):
        await store.write(jobs.add, text)
    assert await store.write(jobs.add, "a") == 1


async def test_values_come_back_as_they_went_in(store: PostgresStore) -> None:
    def job(t: Tx) -> tuple[object, ...] | None:
        t.execute("CREATE TABLE v (t TEXT, i BIGINT, r DOUBLE PRECISION, b @BYTES, n TEXT)")
        t.execute(
            "INSERT INTO v VALUES ($1, $2, $3, $4, $5)", "Ω'\\", 2**63 - 1, 0.1, b"\0\xff", None
        )
        return t.fetch_one("SELECT * FROM v")

    assert await store.write(job) == ("Ω'\\", 2**63 - 1, 0.1, b"\0\xff", None)


async def test_sums_are_integers_and_truth_is_a_number(store: PostgresStore) -> None:
    def job(t: Tx) -> tuple[object, ...] | None:
        t.execute("INSERT INTO note (id, n) VALUES ('a', $1), ('b', $2)", True, -3)
        return t.fetch_one("SELECT sum(n), avg(n) FROM note")

    row = await store.write(job)
    assert row == (-2, -1)
    assert row is not None
    assert isinstance(row[0], int)


async def test_macros_are_left_alone_in_quotes_and_comments(store: PostgresStore) -> None:
    row = await store.read(
        lambda t: t.fetch_one("SELECT '@LOCK; @X', 1 AS \"@ID\" /* @SKIP */ -- @NO")
    )
    assert row == ("@LOCK; @X", 1)


@pytest.mark.parametrize("sql", ["COMMIT", " rollback", "SELECT 1 @LOCKED"])
async def test_a_job_can_neither_end_its_transaction_nor_invent_macros(
    store: PostgresStore, sql: str
) -> None:
    def job(t: Tx) -> None:
        t.execute(sql)  # pyright: ignore[reportArgumentType]

    with pytest.raises(ValueError, match=r"macro|control"):
        await store.write(job)


async def test_a_table_changed_by_another_process_does_not_break_prepared_statements(
    store: PostgresStore, postgres_url: str
) -> None:
    def job(t: Tx) -> list[tuple[object, ...]]:
        return t.fetch_all("SELECT * FROM note")

    for _ in range(3):
        await store.read(job)
    async with await open_postgres(postgres_url) as other:
        await other.write(lambda t: t.execute("ALTER TABLE note ADD COLUMN more TEXT"))
        await other.write(jobs.add, "a")
    assert await store.read(job) == [("a", 0, None)]


async def test_a_statement_that_failed_when_it_was_prepared_works_later(
    store: PostgresStore,
) -> None:
    def job(t: Tx) -> int:
        return t.execute("SELECT * FROM later WHERE id = $1", "a")

    for _ in range(3):
        with pytest.raises(StoreError, match="does not exist"):
            await store.write(job)
    await store.write(lambda t: t.execute("CREATE TABLE later (id TEXT)"))
    for _ in range(3):
        assert await store.write(job) == 0


async def test_a_job_that_raises_stop_iteration_does_not_hang_its_caller(
    store: PostgresStore,
) -> None:
    def job(t: Tx) -> None:
        next(iter(()))

    with pytest.raises(RuntimeError, match="StopIteration"):
        await store.write(job)


async def test_closing_lets_accepted_jobs_end_and_leaves_nothing_behind(
    postgres_url: str,
) -> None:
    async with await open_postgres(postgres_url) as other:
        store = await open_postgres(postgres_url, limits=Limits(writers=2))
        await store.write(jobs.make_tables)
        await store.register_owner("me")
        await anext(store.watch_changes())
        writing = [asyncio.create_task(store.write(jobs.add, str(n))) for n in range(20)]
        await asyncio.sleep(0)
        await asyncio.gather(store.aclose(), store.aclose())
        await asyncio.gather(*writing)
        assert await other.read(jobs.count) == 20
        with pytest.raises(StoreUnavailable, match="closed"):
            await store.write(jobs.add, "late")
        await jobs.until(other, lambda t: jobs.connections(t) <= 2)
    assert [t.name for t in threading.enumerate() if t.name.startswith("clew-postgres")] == []


async def test_a_cancelled_close_closes_all_the_same(postgres_url: str) -> None:
    store = await open_postgres(postgres_url)
    closing = asyncio.create_task(store.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await store.aclose()
    assert [t.name for t in threading.enumerate() if t.name.startswith("clew-postgres")] == []


async def test_idle_workers_end_and_others_take_their_place(postgres_url: str) -> None:
    async with await open_postgres(postgres_url, limits=Limits(idle_timeout=0.01)) as store:
        await store.write(jobs.make_tables)
        for n in range(30):
            assert await store.write(jobs.add, str(n)) == n + 1
            await asyncio.sleep(0.001 * (n % 20))


async def test_a_paused_process_does_not_hold_its_locks_for_long(postgres_url: str) -> None:
    begun, done = threading.Event(), threading.Event()
    runs: list[None] = []

    def job(t: Tx) -> None:
        jobs.increase(t, "a")
        runs.append(None)
        begun.set()
        if len(runs) == 1:
            done.wait(20)
            jobs.count(t)

    async with (
        await open_postgres(postgres_url, limits=Limits(idle_transaction_timeout=0.1)) as paused,
        await open_postgres(postgres_url) as other,
    ):
        await paused.write(jobs.make_tables)
        await paused.write(jobs.add, "a")
        writing = asyncio.create_task(paused.write(job))
        await asyncio.to_thread(begun.wait)
        await other.write(jobs.increase, "a")
        done.set()
        await writing
        assert await other.read(jobs.value, "a") == 2


async def test_a_lock_of_a_process_behind_a_slow_link_is_soon_free(postgres_url: str) -> None:
    # The answer to what is sent first is not there at once: the driver's own pipeline then sends
    # one message more, after which the server does not look at the time any more.
    begun, done = threading.Event(), threading.Event()

    def job(t: Tx) -> None:
        jobs.lock(t, "a")
        begun.set()
        done.wait(20)

    async with (
        listening(BlackHole(postgres_url).handle, postgres_url) as far,
        await open_postgres(far, limits=Limits(idle_transaction_timeout=0.1)) as paused,
        await open_postgres(postgres_url, limits=Limits(max_conflicts=0)) as other,
    ):
        await paused.write(jobs.make_tables)
        await paused.write(jobs.add, "a")
        writing = asyncio.create_task(paused.write(job))
        await asyncio.to_thread(begun.wait)
        await other.write(jobs.increase, "a")
        done.set()
        await writing
