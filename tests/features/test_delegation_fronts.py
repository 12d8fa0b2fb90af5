"""Tasks on every front: the tool of the model, ``/agents``, HTTP, JSON-RPC and ``clew agents``."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from clew.commands.runner import CommandRunner
from clew.core import completion
from clew.core.access import AccessPolicy, ChannelAccount, ChannelActor
from clew.core.entry import Role
from clew.core.scope import scope_of
from clew.core.tool_facts import ToolFacts
from clew.features import delegation
from clew.features.delegation.children import ChildState, list_tree, sum_tree_usage
from clew.plugin.registry import Features
from clew.runtime import make_command_registry
from clew.store.transactions.grants import is_tainted
from tests.acceptance.program import Clew
from tests.features.delegation_world import (
    CHAT,
    DelegationWorld,
    delegate,
    do,
    obey,
    open_delegation,
)
from tests.features.test_delegation_ends import Gate, nap
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from clew.plugin import Registry
    from clew.store.contract import Tx

WHO = ChannelActor(
    account=ChannelAccount(channel="telegram", account="bot"),
    user="42",
    policy=AccessPolicy(allow=frozenset({"42"})),
)


@pytest.fixture(autouse=True)
def short_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "COLLECT_FOR", timedelta(milliseconds=20))


def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def read_page() -> str:
    """Read a page of a stranger."""
    return "a page"


def add_tools(registry: Registry) -> None:
    registry.add_tool(pay, effect="once", facts=lambda _: ToolFacts(outward=True))
    registry.add_tool(read_page, effect="pure", untrusted=True)


def make_runner(world: DelegationWorld) -> CommandRunner:
    features = Features()
    features.register("delegation", delegation.register)
    features.bind_settings(world.settings)
    return CommandRunner(world.engine, make_command_registry(features))


async def write(world: DelegationWorld, text: str) -> str:
    reply = await make_runner(world).run_command(text, target=CHAT, viewer=scope_of(CHAT), who=WHO)
    return reply.text


async def test_the_model_lists_tells_reads_and_stops_its_tasks(
    tmp_path: Path, store_url: str
) -> None:
    gate = Gate()
    async with open_delegation(tmp_path, store_url, obey, gate.register) as world:
        await world.say(do(delegate("count the apples")))
        first = await world.child()
        end = await world.say(do(("agents", {"action": "read", "task": first.conversation_id})))
        assert "characters 0 to 22 of 22\n\ndone: count the apples" in end.text
        told = {"action": "tell", "task": first.conversation_id, "text": "and the pears"}
        end = await world.say(do(("agents", told)))
        assert "runs in the background" in end.text
        await world.settle()
        [report] = await _reports(world)
        assert report.endswith("done: and the pears")
        assert (await world.child()).round == 2
        await world.say(do(nap("well", background=True)))
        second = (await world.children())[-1]
        end = await world.say(do(("agents", {"action": "stop", "task": second.conversation_id})))
        await world.settle()
        assert [one.state for one in await world.children()] == [
            ChildState.DONE, ChildState.STOPPED,
        ]  # fmt: skip
        assert "stopped: it was told to stop" in (await _reports(world))[-1]
        end = await world.say(do(("agents", {})))
        assert f"{second.conversation_id}  " in end.text
        other = await world.say(do(("agents", {"action": "read", "task": "cnv_other"})))
        assert "there is no task" in other.text


async def _reports(world: DelegationWorld) -> list[str]:
    parent = (await world.children())[0].parent_conversation
    log = await world.log(parent)
    return [one.text for one in log if one.role is Role.USER and one.is_caused]


async def test_a_person_looks_after_tasks_and_goes_into_one(tmp_path: Path, store_url: str) -> None:
    gate = Gate()
    async with open_delegation(tmp_path, store_url, obey, gate.register) as world:
        await world.say("hello")
        assert await write(world, "/agents") == "There are no tasks here."
        await world.say(do(nap("well", background=True)))
        child = await world.child()
        assert f"{child.conversation_id}  " in await write(world, "/agents")
        assert "steps: " in await write(world, f"/agents {child.conversation_id}")
        assert "is told so" in await write(world, f"/agents tell {child.conversation_id} be quick")
        assert child.conversation_id in await write(world, f"/resume {child.conversation_id}")
        said = await world.engine.submit("and what about pears?", target=CHAT)
        assert said.conversation_id == child.conversation_id
        gate.open()
        await world.settle()
        # What is said last in it, whoever asked, is the answer, told once.
        assert len(await _reports(world)) == 1
        assert "done: and what about pears?" in await write(
            world, f"/agents read {child.conversation_id}"
        )
        # Once it has ended, what a person says there stays there.
        await world.say("one more thing")
        await world.settle()
        assert len(await _reports(world)) == 1


async def test_a_question_of_a_task_is_asked_in_the_chat_of_its_parent_and_survives_a_restart(
    tmp_path: Path, store_url: str
) -> None:
    task = do(("pay", {"amount": 3}))
    async with open_delegation(tmp_path, store_url, obey, add_tools) as world:
        said = await world.engine.submit(do(delegate(task)), target=CHAT)

        async def is_asked() -> bool:
            return any(kind == "approval" for _, kind, _ in await world.delivered())

        await wait_until(is_asked)
        [(route, _, question)] = await world.delivered()
        assert route == CHAT.key
        assert "it is for the task" in question
    async with open_delegation(tmp_path, store_url, obey, add_tools) as again:
        await again.store.write(lambda t: t.execute("UPDATE delivery SET state = 'delivered'"))
        assert await write(again, "/approve") == "Allowed: pay."
        again.engine.wake_conversation(said.conversation_id)
        end = await again.engine.wait_for_input(said)
        assert "told: paid 3" in end.text
        await again.settle()


async def test_text_of_strangers_taints_the_parent_and_what_it_asks_for(
    tmp_path: Path, store_url: str
) -> None:
    async with open_delegation(tmp_path, store_url, obey, add_tools) as world:
        end = await world.say(do(delegate("count")))
        assert end.turn is not None
        parent = end.turn.conversation_id
        assert not await world.store.read(is_tainted, parent)
        await world.say(do(delegate(do(("read_page", {})))))
        assert await world.store.read(is_tainted, parent)
    # Also after a restart in between.
    async with open_delegation(tmp_path, store_url, obey, add_tools) as world:
        assert await world.store.read(is_tainted, parent)
        await world.say(do(delegate("count again")))
        found = await world.children()
        tainted = [await world.store.read(is_tainted, one.conversation_id) for one in found]
        # The first one ended before; what it has done is of its parent, which is tainted now.
        assert tainted == [True, True, True]


async def test_the_usage_of_a_tree_is_right_to_the_token(tmp_path: Path, store_url: str) -> None:
    async with open_delegation(tmp_path, store_url) as world:
        end = await world.say(do(delegate(do(delegate("deep"))), delegate("flat")))
        assert end.turn is not None
        top = end.turn.conversation_id
        used = await world.store.read(sum_tree_usage, top)
        counted = await world.store.read(_sum_all)
        assert (used.input_tokens, used.output_tokens) == counted
        assert counted[0] > 0
        assert len(await world.store.read(list_tree, top)) == 3
        assert f"{sum(counted):,} tokens" in await write(world, "/agents")


def _sum_all(t: Tx) -> tuple[int, int]:
    row = t.fetch_one("SELECT sum(input_tokens), sum(output_tokens) FROM usage")
    assert row is not None
    return int(row[0]), int(row[1])


def test_programs_and_the_command_line_look_after_tasks(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('[api]\ntoken = "s3cret"\n', encoding="utf-8")
    clew = Clew(home, {"CLEW_MODEL__NAME": "offline"})
    child = asyncio.run(_make_task(home))
    headers = {"Authorization": "Bearer s3cret"}
    with (
        clew.serving() as (url, _),
        httpx2.Client(base_url=url, headers=headers, timeout=60) as http,
    ):
        listed = http.get("/api/agents", params={"done": "true"}).json()
        assert [one["id"] for one in listed["items"]] == [child]
        assert http.get(f"/api/agents/{child}").json()["state"] == "done"
        assert http.get(f"/api/agents/{child}/answer").json()["text"] == "done: count"
        assert http.post(f"/api/agents/{child}/stop").json()["state"] == "done"
        told = http.post(f"/api/agents/{child}/tell", json={"text": "again"}).json()
        assert told["state"] == "running"
        assert http.get("/api/agents/cnv_none").status_code == 404
    found: dict[str, Any] = clew.data("agents", "list", "--done")
    assert [one["id"] for one in found["items"]] == [child]
    assert clew.data("agents", "show", child)["depth"] == 1
    assert json.loads(clew.ok("agents", "read", child, "--json"))["start"] == 0
    assert clew.data("agents", "stop", child)["id"] == child
    assert "no task" in clew.run("agents", "tell", "cnv_none", "hello").err


async def _make_task(home: Path) -> str:
    """Have a task done in the store of this home."""
    async with open_delegation(home, f"sqlite:///{home}/clew.db") as world:
        await world.say(do(delegate("count")))
        return (await world.child()).conversation_id
