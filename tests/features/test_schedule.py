"""Jobs: each slot is accepted once, has a row, and is told where the job was made."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING

import pytest

from clew.config.workspaces import find_workspace
from clew.core.access import AccessStatus, ChannelAccount
from clew.core.entry import Role
from clew.core.route import Route
from clew.core.scope import LOCAL, scope_of
from clew.features.schedule.jobs import JobKind, JobPlace, JobState, QuietRule, list_jobs
from clew.features.schedule.planning import CatchUp
from clew.features.schedule.service import Scheduler
from clew.features.schedule.settings import ScheduleSettings
from clew.store.feature_migrations import delete_feature_rows
from clew.store.transactions import conversations, pairings
from clew.testing import Fail, Text
from tests.features.job_world import CHAT, LOCAL_OWNER, HandClock, open_jobs, owner_of
from tests.sandboxes import needs_bubblewrap
from tests.soak.scheduler import fire_under_kills, is_right

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.contract import Tx
    from clew.testing import ProviderRequest, Reply


def _read_inputs(t: Tx) -> list[tuple[str, str, str]]:
    return [
        (kind, outcome, conversation)
        for kind, outcome, conversation in t.fetch_all(
            "SELECT kind, outcome, conversation_id FROM inbox ORDER BY n"
        )
    ]


@pytest.mark.both_databases
async def test_each_slot_is_accepted_once_by_several_gateways_and_told_in_the_chat(
    tmp_path: Path, store_url: str
) -> None:
    async with open_jobs(tmp_path, store_url) as world:
        home = await world.say("hello")
        fresh = await world.add(task="/new look after the garden", every="1m")
        own = await world.add(task="water it", cron="*/2 * * * *", place=JobPlace.OWN)
        here = await world.add(
            task="call the gardener", at="2026-11-29T12:02", owner=owner_of(home)
        )
        others = [Scheduler(world.engine.feature_context, ScheduleSettings()) for _ in range(2)]
        for _ in range(4):
            world.clock.move(minutes=1)
            await asyncio.gather(*(one.fire_due() for one in (world.scheduler, *others)))
            await world.settle()
        assert await world.states(fresh) == ["done"] * 4
        assert await world.states(own) == ["done"] * 2
        assert await world.states(here) == ["done"]
        assert (await world.get(here)).state is JobState.DONE
        inputs = await world.store.read(_read_inputs)
        assert Counter(kind for kind, _, _ in inputs) == {"message": 1, "completion": 7}
        fires = [*await world.fires(fresh), *await world.fires(own), *await world.fires(here)]
        assert sorted(str(fire.input) for fire in fires) == sorted(
            await world.store.read(
                lambda t: t.fetch_column("SELECT id FROM inbox WHERE kind = 'completion'")
            )
        )
        # A new conversation for each, one that lasts, and the one in which it was asked.
        assert len({fire.conversation for fire in await world.fires(fresh)}) == 4
        assert {fire.conversation for fire in await world.fires(own)} == {own.conversation}
        assert [fire.conversation for fire in await world.fires(here)] == [home]
        log = await world.engine.read_entries(home)
        said = [entry for entry in log if entry.role is Role.USER]
        assert [entry.is_caused for entry in said] == [False, True]
        assert "call the gardener" in said[1].text
        delivered = await world.delivered()
        assert [text for _, text in delivered] == ["watered"] * 8
        routes = await world.store.read(
            lambda t: t.fetch_column("SELECT DISTINCT route FROM delivery")
        )
        assert routes == [CHAT.key]
        sent = json.dumps(world.provider.requests[-1].json)
        assert "not written by a person" in sent


async def test_a_slot_has_a_row_whatever_became_of_it(tmp_path: Path, store_url: str) -> None:
    async with open_jobs(tmp_path, store_url) as world:
        none = await world.add(every="1m", catch_up=CatchUp.NONE)
        latest = await world.add(every="1m", catch_up=CatchUp.LATEST)
        everything = await world.add(every="1m", catch_up=CatchUp.ALL)
        # The clock goes forward: nothing was running for half an hour.
        await world.step(minutes=30, seconds=59)
        missed = ["missed: down"] * 28
        assert await world.states(none) == [*missed, "missed: later", "done"]
        assert await world.states(latest) == [*missed, "missed: later", "done"]
        assert await world.states(everything) == ["missed: down"] * 6 + ["done"] * 24
        # And back: nothing comes early, or twice.
        await world.step(hours=-2)
        await world.step(minutes=90)
        assert [len(await world.fires(one)) for one in (none, latest, everything)] == [30] * 3
        await world.step(minutes=31)
        assert (await world.states(none))[-1] == "done"


async def test_three_days_without_a_gateway_are_three_days_of_rows(
    tmp_path: Path, store_url: str
) -> None:
    async with open_jobs(tmp_path, store_url) as world:
        minutely = await world.add(every="1m")
        daily = await world.add(cron="0 8 * * *")
        await world.step(days=3, seconds=10)
        assert Counter(await world.states(minutely)) == {
            "missed: down": 3 * 24 * 60 - 2, "missed: later": 1, "done": 1
        }  # fmt: skip
        assert await world.states(daily) == ["missed: down", "missed: down", "done"]
        assert len(world.provider.requests) == 2
        told = [json.dumps(request.json) for request in world.provider.requests]
        assert ["runs late, at Wed 2026-12-02 12:00" in one for one in sorted(told)] == [
            False, True,
        ]  # fmt: skip


async def test_a_run_that_goes_on_keeps_the_next_slots_from_starting_another(
    tmp_path: Path, store_url: str
) -> None:
    release = threading.Event()

    def answer(request: ProviderRequest) -> Reply:
        release.wait()
        return Text("watered")

    async with open_jobs(tmp_path, store_url, answer) as world:
        job = await world.add(every="1m")
        for _ in range(3):
            world.clock.move(minutes=1)
            await world.scheduler.fire_due()
        release.set()
        await world.settle()
        await world.step(minutes=1)
        skipped = "skipped: running"
        assert await world.states(job) == ["done", skipped, skipped, "done"]


@pytest.mark.both_databases
async def test_failures_are_told_once_and_then_once_a_day_and_so_is_their_end(
    tmp_path: Path, store_url: str
) -> None:
    broken = True

    def answer(request: ProviderRequest) -> Reply:
        return Fail("authentication") if broken else Text("NOTHING")

    evening = HandClock(datetime(2026, 11, 29, 20, 0, 30, tzinfo=UTC))
    async with open_jobs(tmp_path, store_url, answer, clock=evening) as world:
        job = await world.add(every="15m", quiet_if="NOTHING")
        for _ in range(40):
            await world.step(minutes=15)
        states = await world.states(job)
        assert Counter(state.partition(":")[0] for state in states) == {"failed": 40}
        first, second = [text for _, text in await world.delivered()]
        assert first.startswith("The job 'look after the garden' failed: ")
        assert second.startswith("The job 'look after the garden' failed, 16 times in a row: ")
        broken = False
        for _ in range(2):
            await world.step(minutes=15)
        assert [text for _, text in await world.delivered()][2:] == [
            "The job 'look after the garden' works again, after 40 failures."
        ]


async def test_quiet_hours_hold_runs_back_or_skip_them(tmp_path: Path, store_url: str) -> None:
    quiet = ScheduleSettings(quiet_hours=(time(13), time(15)), timezone="UTC")
    async with open_jobs(tmp_path, store_url, settings=quiet) as world:
        held = await world.add(cron="30 * * * *")
        skipped = await world.add(cron="30 * * * *", quiet=QuietRule.SKIP)
        ignoring = await world.add(cron="30 * * * *", quiet=QuietRule.IGNORE)
        for _ in range(22):
            await world.step(minutes=10)
        assert await world.states(held) == ["done", "skipped: quiet", "done", "done"]
        assert await world.states(skipped) == ["done", "skipped: quiet", "skipped: quiet", "done"]
        assert await world.states(ignoring) == ["done"] * 4


@pytest.mark.both_databases
async def test_a_message_needs_no_model_and_a_budget_that_is_spent_no_turn(
    tmp_path: Path, store_url: str
) -> None:
    async with open_jobs(tmp_path, store_url, tokens=0) as world:
        home = await world.say("hello")
        message = await world.add(
            task="stand up", every="1m", kind=JobKind.MESSAGE, owner=owner_of(home), runs=2
        )
        turn = await world.add(every="1m", runs=1)
        for _ in range(3):
            await world.step(minutes=1)
        assert await world.states(message) == ["done", "done"]
        assert (await world.get(message)).state is JobState.DONE
        assert (await world.delivered())[1:] == [("notice", "stand up")] * 2
        assert await world.states(turn) == ["skipped: budget"] * 3
        assert len(world.provider.requests) == 1


@pytest.mark.both_databases
async def test_a_job_is_paused_when_its_creator_is_shut_out_and_ends_with_its_conversation(
    tmp_path: Path, store_url: str
) -> None:
    payload = json.dumps({"account": ["telegram", "bot"], "sender": {"id": "42", "name": "Ada"}})
    async with open_jobs(tmp_path, store_url) as world:
        job = await world.add(every="1m", owner=owner_of(None, payload=payload))
        local = await world.add(every="1m", owner=LOCAL_OWNER, place=JobPlace.OWN)
        await world.step(minutes=1)
        await world.store.write(
            pairings.revoke_access,
            ChannelAccount(channel="telegram", account="bot"),
            "42",
            to=AccessStatus.REMOVED,
            by="local",
        )
        await world.step(minutes=1)
        after = await world.get(job)
        assert (after.state, after.reason) == (JobState.PAUSED, "no_access")
        assert len(await world.fires(job)) == 1
        assert local.conversation is not None
        scope = await world.store.read(conversations.get_scope, local.conversation)
        assert scope == "local"


async def test_a_conversation_that_is_deleted_takes_its_rows(
    tmp_path: Path, store_url: str
) -> None:
    async with open_jobs(tmp_path, store_url) as world:
        home = await world.say("hello")
        job = await world.add(task="a", every="1m", place=JobPlace.HERE, owner=owner_of(home))
        await world.step(minutes=1)
        assert await world.states(job) == ["done"]
        while await world.store.write(delete_feature_rows, home, 1000):
            pass
        assert await world.store.read(list_jobs, viewer=LOCAL, done=True) == []
        assert await world.fires(job) == []


@pytest.mark.both_databases
async def test_a_chat_that_gets_another_id_keeps_its_jobs_its_conversations_and_its_files(
    tmp_path: Path, store_url: str
) -> None:
    old = Route(platform="telegram", kind="group", chat="-5")
    new = replace(old, kind="supergroup", chat="-1005")
    async with open_jobs(tmp_path, store_url) as world:
        home = await world.say("hello", old)
        job = await world.add(every="1h", owner=owner_of(home, old))
        # Nobody has ever written in this topic.
        topic = await world.add(every="1h", owner=owner_of(home, replace(old, thread="7")))
        other = await world.add(every="1h", owner=owner_of(None))
        files = find_workspace(world.settings, scope_of(old)).root
        files.mkdir(parents=True)
        (files / "plan").write_text("roses")
        for _ in range(2):
            await world.engine.channel_inbox.migrate_route(old, new)
        moved = find_workspace(world.settings, scope_of(new)).root
        assert (moved / "plan").read_text() == "roses"
        found = await world.store.read(list_jobs, viewer=scope_of(new))
        assert [one.route for one in found] == [new.key, replace(new, thread="7").key]
        assert await world.store.read(conversations.get_scope, home) == scope_of(new)
        assert (await world.get(other)).route == CHAT.key
        await world.step(hours=1)
        assert await world.states(job) == await world.states(topic) == ["done"]
        routes = "SELECT DISTINCT route FROM delivery WHERE route LIKE '%100%' ORDER BY route"
        told = await world.store.read(lambda t: t.fetch_column(routes))
        assert told == [new.key, replace(new, thread="7").key]


@needs_bubblewrap
@pytest.mark.both_databases
async def test_a_command_asks_the_model_only_for_what_is_new(
    tmp_path: Path, store_url: str
) -> None:
    async with open_jobs(tmp_path, store_url) as world:
        job = await world.add(
            task="tell what is new", every="1m", kind=JobKind.COMMAND, command="cat news; true"
        )
        broken = await world.add(task="x", every="1m", kind=JobKind.COMMAND, command="exit 3")
        for _ in range(5):
            await world.step(minutes=1)
        assert len(world.provider.requests) == 2
        folder = find_workspace(world.settings, job.scope).root
        (folder / "news").write_text("rain\n")
        for _ in range(2):
            await world.step(minutes=1)
        assert len(world.provider.requests) == 3
        told = json.dumps(world.provider.requests[-1].json)
        assert "Its command has printed:\\\\nrain" in told or "has printed:\\nrain" in told
        same = ["done: unchanged"] * 4
        assert await world.states(job) == ["done", *same, "done", "done: unchanged"]
        states = await world.states(broken)
        assert states[0] == "done", "the model was asked about the first failure"
        assert [state.split(":")[0] for state in states[1:]] == ["failed"] * 6
        # A gateway that ends in the middle of a command: it is not run again.
        world.clock.move(minutes=1)
        lost = "UPDATE schedule_fire SET state = 'started', input = NULL, owner = 'own_dead'"
        await world.store.write(lambda t: t.execute(lost))
        await world.settle()
        assert set(await world.states(job)) == {"failed: interrupted"}


async def test_a_command_does_not_run_at_a_weaker_level_than_it_was_allowed_at(
    tmp_path: Path, store_url: str
) -> None:
    async with open_jobs(tmp_path, store_url) as world:
        world.settings = replace(
            world.settings, sandbox=replace(world.settings.sandbox, level="host")
        )
        context = replace(world.engine.feature_context, settings=world.settings)
        world.scheduler = Scheduler(context, ScheduleSettings(), lambda _: None)
        command = {"every": "1m", "kind": JobKind.COMMAND, "command": f"touch {tmp_path}/ran"}
        job = await world.add(owner=owner_of(None, level="work"), **command)
        await world.step(minutes=1)
        [state] = await world.states(job)
        assert state.startswith("failed: its command was allowed at the sandbox level work")
        assert not (tmp_path / "ran").exists()


@pytest.mark.both_databases
def test_gateways_that_are_killed_fire_each_slot_once(tmp_path: Path, store_url: str) -> None:
    found = fire_under_kills(store_url, tmp_path, jobs=4, minutes=6, kills=1, gateways=2)
    assert is_right(found, jobs=4, minutes=6), found
