"""Faults of schedulers that people have met elsewhere, and that cannot happen here."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from clew.core.completion import MAX_HOPS
from clew.core.entry import Role
from clew.core.scope import LOCAL
from clew.errors import UsageError
from clew.features.schedule import operations
from clew.features.schedule.jobs import JobKind, JobPlace, JobState, list_jobs
from clew.features.schedule.making import resume_job
from clew.features.schedule.planning import CatchUp
from clew.testing import Calls, ScriptedCall, Text
from tests.features.job_world import CHAT, LOCAL_OWNER, open_jobs, owner_of

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply


async def test_a_slot_whose_time_has_not_come_is_never_made_up_for(
    tmp_path: Path, store_url: str
) -> None:
    """Elsewhere a restart on the day of creation runs what is due tomorrow."""
    async with open_jobs(tmp_path, store_url) as world:
        clock = world.clock
        # Today at eight is past: nobody had asked for it then.
        daily = await world.add(cron="0 8 * * *", catch_up=CatchUp.LATEST)
        often = await world.add(every="1h", catch_up=CatchUp.ALL)
        once = await world.add(at="2026-11-29T18:00", catch_up=CatchUp.ALL)
    for hours in (0.2, -3):
        async with open_jobs(tmp_path, store_url, clock=clock) as world:
            await world.step(hours=hours)
            assert not world.provider.requests
            assert [await world.states(job) for job in (daily, often, once)] == [[], [], []]
            # Nor after a pause, which finds the next slot anew.
            for job in (daily, often):
                await world.store.write(resume_job, await world.get(job))
            await world.step()
            assert not world.provider.requests
    async with open_jobs(tmp_path, store_url, clock=clock) as world:
        await world.step(days=1)
        slots = [fire.slot for job in (daily, often, once) for fire in await world.fires(job)]
        assert slots
        assert max(slots) <= int(clock.now().timestamp() * 1000)
        assert all(fire.at >= fire.slot for fire in await world.fires(often))


async def test_a_reminder_is_never_taken_for_a_message_of_a_person(
    tmp_path: Path, store_url: str
) -> None:
    async with open_jobs(tmp_path, store_url) as world:
        home = await world.say("hello")
        for kind in (JobKind.TURN, JobKind.MESSAGE):
            await world.add(
                task="/new", at="2026-11-29T12:01", kind=kind, place=JobPlace.HERE,
                owner=owner_of(home, payload=json.dumps({"sender": {"id": "42", "name": "Ada"}})),
            )  # fmt: skip
        await world.step(minutes=1)
        kinds = "SELECT kind FROM inbox ORDER BY n"
        found = await world.store.read(lambda t: t.fetch_column(kinds))
        assert found == ["message", "completion"], "no command, and nothing of the message"
        log = [one for one in await world.engine.read_entries(home) if one.role is Role.USER]
        assert [entry.is_caused for entry in log] == [False, True]
        assert "not written by a person" in json.dumps(world.provider.requests[-1].json)
        assert await world.say("still here") == home
        assert len(world.provider.requests) == 3


async def test_a_reminder_goes_to_no_chat_that_is_not_there(tmp_path: Path, store_url: str) -> None:
    """Elsewhere reminders go to ``current``, ``default`` or the example of a manual."""

    def answer(request: ProviderRequest) -> Reply:
        last = request.messages[-1]
        if last.results or "runs. It is due" in last.text:
            return Text("done")
        args = {"task": "tea", "every": "1m", "route": "agent:main:telegram:dm:12345"}
        return Calls((ScriptedCall("schedule", args),))

    async with open_jobs(tmp_path, store_url, answer) as world:
        await world.say("tea, please")
        for job in await world.store.read(list_jobs, viewer=LOCAL):
            assert job.route == CHAT.key, "the chat in which it was asked, whatever the model says"
        for route in ("agent:main:telegram:dm:current", "agent:main:slack:channel:C0123456789"):
            given = operations.AddJobParams(task="tea", every="1m", route=route)
            with pytest.raises(UsageError, match="write to the agent there first"):
                await world.store.write(
                    operations.add_job, "job_x", given, zone="UTC", viewer=LOCAL
                )
        with pytest.raises(UsageError, match="there is none here"):
            await world.add(kind=JobKind.MESSAGE, every="1m", owner=LOCAL_OWNER)
        await world.add(every="1m", owner=LOCAL_OWNER)
        await world.step(minutes=1)
        routes = "SELECT DISTINCT route FROM delivery"
        assert await world.store.read(lambda t: t.fetch_column(routes)) == [CHAT.key]


async def test_jobs_that_create_jobs_come_to_an_end(tmp_path: Path, store_url: str) -> None:
    def answer(request: ProviderRequest) -> Reply:
        last = request.messages[-1]
        if last.results:
            return Text(last.results[0].text)
        minute = world.clock.now().minute + 1
        args = {"task": "once more", "at": f"2026-11-29T12:{minute:02}", "where": "here"}
        return Calls((ScriptedCall("schedule", args),))

    async with open_jobs(tmp_path, store_url, answer) as world:
        await world.say("go")
        for _ in range(MAX_HOPS + 5):
            await world.step(minutes=1)
        found = await world.store.read(list_jobs, viewer=LOCAL, done=True)
        assert Counter(job.state for job in found) == {JobState.DONE: MAX_HOPS}
        told = [text for _, text in await world.delivered()]
        assert "turns ran in a row without a person" in told[-1]
        assert len(told) == MAX_HOPS + 1


async def test_quiet_heartbeats_say_nothing_and_one_with_news_says_it_once(
    tmp_path: Path, store_url: str
) -> None:
    """A heartbeat is an ordinary job; it has no state of its own, and no rule."""
    news = False

    def answer(request: ProviderRequest) -> Reply:
        return Text("The cellar is under water." if news else "NOTHING")

    async with open_jobs(tmp_path, store_url, answer) as world:
        job = await world.add(
            task="look after what is open", every="30m", place=JobPlace.OWN, quiet_if="NOTHING"
        )
        for beat in range(10):
            news = beat == 5
            await world.step(minutes=30)
        assert await world.states(job) == ["done"] * 10
        assert await world.delivered() == [("answer", "The cellar is under water.")]
        assert {fire.conversation for fire in await world.fires(job)} == {job.conversation}
