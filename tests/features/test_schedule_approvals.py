"""Questions of jobs: asked where the job was made, answered after a restart, refused at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.commands.builtin import BUILTIN_REGISTRY
from clew.commands.runner import CommandRunner
from clew.core.access import AccessPolicy, ChannelAccount, ChannelActor
from clew.core.scope import scope_of
from clew.core.tool_facts import ToolFacts
from clew.testing import Calls, ScriptedCall, Text
from tests.features.job_world import CHAT, LOCAL_OWNER, JobWorld, open_jobs
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from clew.plugin import Registry
    from clew.store.contract import Tx
    from clew.testing import ProviderRequest, Reply

WHO = ChannelActor(
    account=ChannelAccount(channel="telegram", account="bot"),
    user="42",
    policy=AccessPolicy(allow=frozenset({"42"})),
)


def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def add_pay(registry: Registry) -> None:
    registry.add_tool(pay, effect="once", facts=lambda _: ToolFacts(outward=True))


def answer(request: ProviderRequest) -> Reply:
    last = request.messages[-1]
    if last.results:
        return Text(f"told: {last.results[0].text}")
    return Calls((ScriptedCall("pay", {"amount": 3}),)) if "pay" in last.text else Text("hello")


async def run_command(world: JobWorld, text: str) -> str:
    runner = CommandRunner(world.engine, BUILTIN_REGISTRY)
    reply = await runner.run_command(text, target=CHAT, viewer=scope_of(CHAT), who=WHO)
    return reply.text


async def wait_for_questions(world: JobWorld, wanted: int) -> None:
    async def is_so() -> bool:
        count = "SELECT count(*) FROM turn WHERE state = 'waiting'"
        return await world.store.read(lambda t: t.fetch_value(count)) == wanted

    await wait_until(is_so)


def _mark_delivered(t: Tx) -> None:
    t.execute("UPDATE delivery SET state = 'delivered'")


async def test_a_call_that_is_asked_about_waits_for_the_owner_and_skips_later_times(
    tmp_path: Path, store_url: str
) -> None:
    async with open_jobs(tmp_path, store_url, answer, add_pay) as world:
        await world.say("hi")
        job = await world.add(task="pay the rent", every="1h")
        world.clock.move(hours=1)
        await world.scheduler.fire_due()
        await wait_for_questions(world, 1)
        kinds = [kind for kind, _ in await world.delivered()]
        assert kinds == ["answer", "approval"], "the owner was asked in the chat"
        for _ in range(3):
            await world.step(hours=1)
        assert await world.states(job) == ["started", *["skipped: waiting"] * 3]
    clock = world.clock
    async with open_jobs(tmp_path, store_url, answer, add_pay, clock=clock) as again:
        await again.store.write(_mark_delivered)
        assert await run_command(again, "/approve") == "Allowed: pay."
        await wait_for_questions(again, 0)
        await again.settle()
        assert (await again.states(job))[0] == "done"
        assert (await again.delivered())[-1] == ("answer", "told: paid 3")
        await again.step(hours=1)
        await wait_for_questions(again, 1)


async def test_without_somebody_to_ask_a_call_is_refused_at_once(
    tmp_path: Path, store_url: str
) -> None:
    async with open_jobs(tmp_path, store_url, answer, add_pay) as world:
        job = await world.add(task="pay the rent", every="1h", owner=LOCAL_OWNER)
        await world.step(hours=1)
        assert await world.states(job) == ["done"]
        [fire] = await world.fires(job)
        assert fire.conversation is not None
        log = await world.engine.read_entries(fire.conversation)
        assert "nobody can be asked here" in log[-1].text


@pytest.mark.both_databases
async def test_two_questions_of_one_number_are_told_apart(tmp_path: Path, store_url: str) -> None:
    async with open_jobs(tmp_path, store_url, answer, add_pay) as world:
        await world.add(task="pay the rent", every="1h")
        await world.add(task="pay the milk", every="1h")
        world.clock.move(hours=1)
        await world.scheduler.fire_due()
        await wait_for_questions(world, 2)
        await world.store.write(_mark_delivered)
        await world.say("hi")
        told = await run_command(world, "/approve 1")
        assert told.startswith("2 questions of several turns are number 1: /approve apr_")
        ids = await world.store.read(lambda t: t.fetch_column("SELECT id FROM approval"))
        for approval in ids:
            assert (await run_command(world, f"/deny {approval}")).startswith("Refused: pay.")
        await wait_for_questions(world, 0)
        await world.settle()
