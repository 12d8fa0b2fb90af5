"""Jobs over the years: people who leave, reports that do not arrive, rows that grow old."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from clew.clock import to_millis
from clew.config.settings import ChannelSettings
from clew.core.access import AccessStatus, ChannelAccount
from clew.core.route import Route
from clew.core.scope import LOCAL
from clew.errors import UsageError
from clew.features.schedule import front
from clew.features.schedule.editing import ScheduleEdit, edit_schedule
from clew.features.schedule.jobs import JobKind, JobState, list_jobs
from clew.features.schedule.pruning import prune_jobs
from clew.features.schedule.service import Scheduler
from clew.features.schedule.settings import ScheduleSettings
from clew.features.schedule.tool_calls import change_job
from clew.store.transactions import pairings
from tests.features.job_world import LOCAL_OWNER, JobWorld, open_jobs, owner_of

if TYPE_CHECKING:
    from pathlib import Path

    from clew.features.schedule.jobs import ScheduledJob
    from clew.store.contract import Tx

GROUP = Route(platform="telegram", kind="group", chat="-7")
ADA = json.dumps({"account": ["telegram", "bot"], "sender": {"id": "42", "name": "Ada"}})


def scheduler_with(world: JobWorld, *allow: str) -> Scheduler:
    """A gateway that was started with other settings."""
    channel = ChannelSettings(allow=allow, groups=("*",))
    settings = replace(world.settings, channels={"telegram": channel})
    context = replace(world.engine.feature_context, settings=settings)
    return Scheduler(context, ScheduleSettings())


@pytest.mark.both_databases
async def test_the_jobs_of_a_person_who_is_taken_out_of_the_settings_are_paused(
    tmp_path: Path, store_url: str
) -> None:
    async with open_jobs(tmp_path, store_url) as world:
        home = await world.say("hello", GROUP)
        mine = await world.add(every="1m", owner=owner_of(None, payload=ADA))
        ours = await world.add(every="1m", owner=owner_of(home, GROUP, payload=ADA), place=None)
        nobodys = await world.add(every="1m", owner=LOCAL_OWNER)
        await scheduler_with(world, "7", "42").pause_excluded()
        assert [(await world.get(one)).state for one in (mine, ours)] == [JobState.ON] * 2
        # At its start, not only when the next slot comes.
        await scheduler_with(world, "7").pause_excluded()
        for job in (mine, ours):
            found = await world.get(job)
            assert (found.state, found.reason) == (JobState.PAUSED, "no_access")
        # A job that somebody resumes all the same is paused by its next slot.
        await world.store.write(lambda t: t.execute("UPDATE schedule_job SET state = 'on'"))
        world.scheduler = scheduler_with(world, "7")
        await world.step(minutes=1)
        assert (await world.get(mine)).state is JobState.PAUSED
        assert [await world.states(one) for one in (mine, ours, nobodys)] == [[], [], ["done"]]
        assert "no access any more" in front.format_job(await world.get(mine))


async def test_the_others_of_a_chat_are_told_that_a_job_is_paused(
    tmp_path: Path, store_url: str
) -> None:
    async with open_jobs(tmp_path, store_url) as world:
        home = await world.say("hello", GROUP)
        owner = owner_of(home, GROUP, payload=ADA)
        await world.add(task="the news", at="2026-11-29T12:01", owner=owner)
        await world.store.write(
            pairings.revoke_access,
            ChannelAccount(channel="telegram", account="bot"),
            "42",
            to=AccessStatus.BLOCKED,
            by="local",
        )
        await world.step(minutes=1)
        told = [text for kind, text in await world.delivered() if kind == "notice"]
        assert [text.partition(":")[0] for text in told] == ["The job 'the news' is paused"]
        assert len(world.provider.requests) == 1, "only the greeting"


def _set_deliveries(t: Tx, state: str) -> None:
    t.execute("UPDATE delivery SET state = $1", state)


@pytest.mark.both_databases
async def test_the_log_tells_whether_a_report_has_arrived(tmp_path: Path, store_url: str) -> None:
    async with open_jobs(tmp_path, store_url) as world:
        home = await world.say("hello")
        jobs = [
            await world.add(every="1m"),
            await world.add(every="1m", kind=JobKind.MESSAGE, owner=owner_of(home)),
        ]
        quiet = await world.add(every="1m", quiet_if="watered")
        await world.step(minutes=1)
        for state, report in (
            ("pending", "waiting"),
            ("unknown", "waiting"),
            ("failed", "failed"),
            ("delivered", "delivered"),
        ):
            await world.store.write(_set_deliveries, state)
            for job in jobs:
                [fire] = await world.store.read(front.describe_fires, job, limit=10)
                assert (fire["state"], fire["report"]) == ("done", report)
                line = await world.store.read(front.format_log, job, limit=10)
                assert line.endswith("done") == (report == "delivered"), line
        [fire] = await world.store.read(front.describe_fires, quiet, limit=10)
        assert (fire["state"], fire["report"]) == ("done", None)


@pytest.mark.both_databases
async def test_a_zone_that_is_changed_while_a_slot_fires_loses_none_and_doubles_none(
    tmp_path: Path, store_url: str
) -> None:
    async with (
        open_jobs(tmp_path, store_url) as world,
        open_jobs(tmp_path, store_url, clock=world.clock) as other,
    ):
        job = await world.add(cron="0 * * * *")
        slots = list[int]()
        for n, zone in enumerate(["Asia/Kolkata", "UTC", "Asia/Kathmandu"] * 2):
            before = await world.get(job)
            assert before.next_slot is not None
            slots.append(before.next_slot)
            world.clock.move(seconds=before.next_slot / 1000 - world.clock.now().timestamp())
            racing = [world.scheduler.fire_due(), other.scheduler.fire_due()]
            moving = _move(other, before, zone)
            moved, *_ = await asyncio.gather(moving, *racing[n % 3 :], *racing[: n % 3])
            await world.settle()
            after = await world.get(job)
            assert after.zone == (zone if moved else before.zone)
            expected = after.schedule.next_after(world.clock.now())
            assert expected is not None
            assert after.next_slot == to_millis(expected)
            assert [fire.slot for fire in await world.fires(job)] == slots
        assert await world.states(job) == ["done"] * len(slots)
        world.clock.move(hours=2)
        await asyncio.gather(
            world.scheduler.fire_due(), other.store.write(change_job, job, "remove")
        )
        assert await world.fires(job) == []


async def _move(world: JobWorld, job: ScheduledJob, zone: str) -> bool:
    """Move a job, unless its slot comes first."""
    try:
        await world.store.write(edit_schedule, job, ScheduleEdit(zone=zone))
    except UsageError as error:
        return "is due since" not in str(error)
    return True


async def test_a_job_that_is_on_keeps_its_slot_when_it_is_resumed(
    tmp_path: Path, store_url: str
) -> None:
    async with open_jobs(tmp_path, store_url) as world:
        job = await world.add(every="1h")
        world.clock.move(hours=1)
        await world.store.write(change_job, job, "resume")
        await world.step()
        assert await world.states(job) == ["done"]


async def test_old_rows_are_removed_and_no_job_runs_more_often_for_it(
    tmp_path: Path, store_url: str
) -> None:
    settings = ScheduleSettings(keep_days=2)
    async with open_jobs(tmp_path, store_url) as world:
        minutely = await world.add(every="1m")
        daily = await world.add(every="1d")
        counted = await world.add(every="1d", runs=5)
        await world.add(at="2026-11-29T12:05")
        waiting = await world.add(at="2027-01-01T12:00")
        for _ in range(2):
            await world.step(days=1)
        context = world.engine.feature_context
        assert await prune_jobs(context, settings) == 0
        await world.step(days=1)
        assert await prune_jobs(context, settings) > 1440
        left = await world.fires(minutely)
        assert min(fire.at for fire in left) > max(fire.at for fire in left) - 2 * 86_400_000
        await world.step(days=2, hours=1)
        await prune_jobs(context, settings)
        assert await world.states(daily) == ["missed: down", "done"]
        assert (await world.states(counted)).count("done") == 4, "they count"
        found = {job.id for job in await world.store.read(list_jobs, viewer=LOCAL, done=True)}
        assert found == {minutely.id, daily.id, counted.id, waiting.id}
        await world.step(days=1)
        assert (await world.get(counted)).state is JobState.DONE
        await world.step(days=3)
        await prune_jobs(context, settings)
        found = {job.id for job in await world.store.read(list_jobs, viewer=LOCAL, done=True)}
        assert found == {minutely.id, daily.id, waiting.id}
        assert (await world.states(daily))[-1] == "done"
        await world.settle()
