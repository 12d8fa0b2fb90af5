"""A turn that takes its process with it ends as failed; one whose process is drained never does."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from clew.store.opening import open_store
from clew.store.transactions import turn_queries, turns
from tests.databases import ON_POSTGRES
from tests.killing import processes
from tests.killing.campaign import KILLED, Campaign
from tests.killing.child import Job
from tests.killing.killer import Place, job_name
from tests.killing.plans import Say
from tests.killing.records import Effect, Ended, Resumed
from tests.killing.tools import gate_in
from tests.killing.verdict import verdict
from tests.waiting import block_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from clew.core.ids import TurnId

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def job(store_url: str, tmp_path: Path) -> Iterator[Job]:
    with processes.provider(tmp_path) as provider:
        yield Job(folder=tmp_path, store_url=store_url, provider=provider)


def test_a_turn_that_kills_its_process_each_time_ends_as_failed_when_resumed_a_third_time(
    job: Job,
) -> None:
    """The breaker of restart loops; those that were at work each time beside it are answered."""
    others = [Say(key=f"c{n}m1", plan="linger") for n in (2, 3, 4)]
    crash, after = Say(key="c1m1", plan="look crash send"), Say(key="c1m2", plan="look")
    first = replace(job, says=[*others, crash, after])
    codes = [processes.ended(processes.start(each)) for each in (first, job)]
    gate_in(job.folder).touch()
    codes.append(processes.ended(processes.start(job)))
    assert codes == [KILLED] * 3
    Campaign(job=job).finish()
    told = {record.key: record for record in job.fronts.of(Ended)}
    assert told["c1m1"].turn_outcome == "failed"
    assert "interrupted by a restart three times" in told["c1m1"].text
    assert {told[say.key].turn_outcome for say in (*others, after)} == {"answered"}
    assert asyncio.run(verdict(job, failed=["c1m1"])) == []


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_call_that_may_have_run_is_not_marked_cancelled_when_the_turn_fails(job: Job) -> None:
    place = Place(name="tool send after")
    first = replace(job, says=[Say(key="c1m1", plan="send")], place=place)
    taken_up = Place(name=f"{job_name(turns.begin_work)} after")
    again = replace(job, place=taken_up, early=True)
    codes = [processes.ended(processes.start(each)) for each in (first, again, again)]
    assert codes == [KILLED] * 3
    Campaign(job=job).finish()
    assert asyncio.run(verdict(job, failed=["c1m1"])) == []


@pytest.mark.parametrize("store_url", ON_POSTGRES, indirect=True)
def test_a_turn_that_outlasts_its_lease_each_time_ends_as_failed(job: Job) -> None:
    says = [Say(key="c1m1", plan="hog"), Say(key="c1m2", plan="look")]
    assert processes.ended(processes.start(replace(job, says=says, lease=2))) == 0
    told = {record.key: record.turn_outcome for record in job.fronts.of(Ended)}
    assert told == {"c1m1": "failed", "c1m2": "answered"}
    Campaign(job=job).finish()
    assert asyncio.run(verdict(job, failed=["c1m1"])) == []


@pytest.mark.parametrize("store_url", ON_POSTGRES, indirect=True)
def test_five_drains_in_a_row_do_not_end_a_turn(job: Job) -> None:
    process = processes.start(replace(job, says=[Say(key="c1m1", plan="look linger; put")]))
    _until(lambda: bool(job.effects.of(Effect)))
    for drains in range(1, 6):
        processes.send(process, signal.SIGTERM)
        assert processes.ended(process) == 0
        process = processes.start(job)
        _until(lambda drains=drains: len(job.fronts.of(Resumed)) == drains)
    gate_in(job.folder).touch()
    assert processes.ended(process) == 0
    (end,) = job.fronts.of(Ended)
    assert end.turn_outcome == "answered"
    Campaign(job=job).finish()
    assert asyncio.run(verdict(job)) == []


@pytest.mark.parametrize(
    ("store_url", "moment"),
    [
        ("sqlite", "before"),
        pytest.param("postgres", "inside", marks=pytest.mark.postgres),
        ("sqlite", "after"),
    ],
    indirect=["store_url"],
)
def test_drains_while_a_turn_is_being_taken_up_do_not_count_as_crashes(
    job: Job, moment: str
) -> None:
    place = Place(name=f"{job_name(turns.begin_work)} {moment}", signal=signal.SIGTERM)
    first = replace(job, says=[Say(key="c1m1", plan="look; put")], place=place)
    assert processes.ended(processes.start(first)) == 0
    for _ in range(4):
        assert processes.ended(processes.start(replace(job, place=place, early=True))) == 0
    Campaign(job=job).finish()
    assert {record.turn_outcome for record in job.fronts.of(Ended)} == {"answered"}
    assert asyncio.run(_resumes(job)) == 0
    assert asyncio.run(verdict(job)) == []


async def _resumes(job: Job) -> int:
    turn: TurnId = job.fronts.of(Ended)[0].turn  # pyright: ignore[reportAssignmentType]
    async with await open_store(job.store_url, home=job.folder) as store:
        return (await store.read(turn_queries.get_turn, turn)).resumes


def _until(true: Callable[[], bool]) -> None:
    block_until(true, seconds=processes.LONGEST)
