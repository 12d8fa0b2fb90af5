"""How tasks end: in the background, late, stopped, deleted, refused, or with a used budget."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from clew.core import completion
from clew.core.entry import Role
from clew.core.turn import TurnOutcome
from clew.features.delegation.children import ChildState
from clew.features.delegation.settings import DelegationSettings
from clew.store.transactions.turn_queries import find_last_done_turn
from clew.testing import Calls, Fail, ReplyUsage, ScriptedCall, Text
from tests.features.delegation_world import (
    CHAT,
    DelegationWorld,
    delegate,
    do,
    obey,
    open_delegation,
)
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clew.core.ids import ConversationId
    from clew.plugin import Registry
    from clew.testing import ProviderRequest, Reply


@pytest.fixture(autouse=True)
def short_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "COLLECT_FOR", timedelta(milliseconds=20))


class Gate:
    """Keeps the tasks that nap from ending until it is opened."""

    def __init__(self) -> None:
        self._open = asyncio.Event()

    def open(self) -> None:
        self._open.set()

    def close(self) -> None:
        self._open.clear()

    def register(self, registry: Registry) -> None:
        async def nap(name: str) -> str:
            """Sleep."""
            await self._open.wait()
            return f"slept {name}"

        registry.add_tool(nap, effect="pure")


def nap(name: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """A call for a task that naps."""
    return delegate(do(("nap", {"name": name})), **more)


async def _running(world: DelegationWorld, wanted: int) -> None:
    """Wait until so many tasks are under way, in turns of their own."""

    async def is_so() -> bool:
        count = """
            SELECT count(*) FROM delegation_child c JOIN turn n
            ON n.conversation_id = c.conversation_id WHERE n.state = 'running'
        """
        return await world.store.read(lambda t: t.fetch_value(count)) == wanted

    await wait_until(is_so)


async def _reports(world: DelegationWorld, conversation: ConversationId) -> list[str]:
    """The completions in a log."""
    return [
        entry.text
        for entry in await world.log(conversation)
        if entry.role is Role.USER and entry.is_caused
    ]


@pytest.mark.both_databases
async def test_a_task_in_the_background_is_told_of_once_when_it_ends(
    tmp_path: Path, store_url: str
) -> None:
    gate = Gate()
    async with open_delegation(tmp_path, store_url, obey, gate.register) as world:
        end = await world.say(do(nap("well", background=True)))
        assert "runs in the background" in end.text
        gate.open()
        # Nobody looks after it: the end of its turn is its end, and its answer.
        child = (await world.child()).conversation_id
        await wait_until(lambda: world.store.read(find_last_done_turn, child))
        assert (await world.child()).woken is not None
        await world.settle()
        assert end.turn is not None
        conversation = end.turn.conversation_id
        [report] = await _reports(world, conversation)
        assert report.endswith("done.\n\ntold: slept well")
        # The next turn has said so in the chat.
        assert [text for _, _, text in await world.delivered()][-1].startswith("done: The task")


@pytest.mark.both_databases
async def test_one_that_takes_too_long_goes_on_in_the_background(
    tmp_path: Path, store_url: str
) -> None:
    gate, short = Gate(), DelegationSettings(wait=timedelta(milliseconds=300))
    async with open_delegation(tmp_path, store_url, obey, gate.register, settings=short) as world:
        end = await world.say(do(nap("well")))
        assert "runs in the background" in end.text
        gate.open()
        await world.settle()
        child = await world.child()
        assert (child.background, child.state) == (True, ChildState.DONE)
        assert len(await _reports(world, child.parent_conversation)) == 1


@pytest.mark.both_databases
async def test_a_stop_reaches_what_works_below(tmp_path: Path, store_url: str) -> None:
    gate = Gate()
    deep = do(delegate(do(nap("deep"))), nap("here"))
    async with open_delegation(tmp_path, store_url, obey, gate.register) as world:
        said = await world.engine.submit(deep, target=CHAT)
        await _running(world, 3)
        assert await world.engine.request_stop(said.conversation_id)
        await wait_until(lambda: _all_are(world, ChildState.STOPPED))
        gate.open()
        await world.settle()
        end = await world.engine.wait_for_input(said)
        assert end.turn is not None
        assert end.turn.outcome is TurnOutcome.CANCELLED
        gate.close()
        # With nothing under way in the conversation itself it reaches those in the background.
        await world.say(do(nap("again", background=True)))
        assert await world.engine.request_stop(said.conversation_id)
        assert not await world.engine.request_stop(said.conversation_id)
        await world.settle()
        assert (await world.children())[-1].state is ChildState.STOPPED


async def _all_are(world: DelegationWorld, state: ChildState) -> bool:
    return all(child.state is state for child in await world.children())


async def test_deleting_either_conversation_ends_the_task(tmp_path: Path, store_url: str) -> None:
    gate = Gate()
    async with open_delegation(tmp_path, store_url, obey, gate.register) as world:
        said = await world.engine.submit(do(nap("well")), target=CHAT)
        await _running(world, 1)
        await world.engine.delete_conversation((await world.child()).conversation_id)
        await world.settle()
        end = await world.engine.wait_for_input(said)
        assert "its conversation was deleted" in end.text
        await world.say(do(nap("more", background=True)))
        await _running(world, 1)
        await world.engine.delete_conversation(said.conversation_id)
        await world.settle()
        gate.open()
        first, second = await world.children()
        assert (first.state, first.reason) == (ChildState.STOPPED, "deleted")
        assert (second.state, second.reason) == (ChildState.STOPPED, "parent")


async def test_what_is_too_deep_or_too_much_is_refused(tmp_path: Path, store_url: str) -> None:
    gate, narrow = Gate(), DelegationSettings(depth=2, at_once=2)
    deep = do(delegate(do(delegate(do(delegate("too deep"))))))
    async with open_delegation(tmp_path, store_url, obey, gate.register, settings=narrow) as world:
        end = await world.say(deep)
        assert "a task may be nested 2 deep, and this one would be 3" in end.text
        wide = [nap(str(n), background=True) for n in range(3)]
        end = await world.say(do(*wide))
        assert end.text.count("runs in the background") == 2
        assert "2 tasks run already" in end.text
        gate.open()
        await world.settle()


async def test_a_task_that_fails_says_why(tmp_path: Path, store_url: str) -> None:
    def answer(request: ProviderRequest) -> Reply:
        if "break" in request.messages[-1].text and "DO" not in request.messages[-1].text:
            return Fail("authentication")
        return obey(request)

    async with open_delegation(tmp_path, store_url, answer) as world:
        end = await world.say(do(delegate("break")))
        assert "failed: " in end.text
        child = await world.child()
        assert child.state is ChildState.FAILED
        await world.settle()


def _spender(obedient: bool) -> Callable[[ProviderRequest], Reply]:
    def answer(request: ProviderRequest) -> Reply:
        if "DO" in request.user_texts[0]:
            return obey(request)
        if obedient and "answer now with what you have" in request.last_user_text:
            return Text("three apples so far")
        found = Calls((ScriptedCall("look", {"at": "apples"}),), text="found an apple")
        return Calls(found.calls, text=found.text, usage=ReplyUsage(input=400, output=200))

    return answer


def look(at: str) -> str:
    """Look at something."""
    return f"there are more {at}"


@pytest.mark.parametrize("obedient", [True, False])
@pytest.mark.parametrize("limit", [{"tokens": 1500}, {"steps": 3}])
async def test_a_used_budget_ends_a_task_with_what_there_is(
    tmp_path: Path, store_url: str, limit: dict[str, Any], *, obedient: bool
) -> None:
    small = DelegationSettings(**limit)
    async with open_delegation(
        tmp_path,
        store_url,
        _spender(obedient),
        lambda registry: registry.add_tool(look, effect="pure"),
        settings=small,
    ) as world:
        end = await world.say(do(delegate("count the apples")))
        child = await world.child()
        if obedient:
            assert child.state is ChildState.DONE
            assert "three apples so far" in end.text
        else:
            assert (child.state, child.reason) == (ChildState.STOPPED, "budget")
            assert "stopped: its budget is used" in end.text
            assert end.text.count("found an apple") == 5
        await world.settle()


async def test_an_answer_goes_to_the_conversation_that_asked_marked_late(
    tmp_path: Path, store_url: str
) -> None:
    gate = Gate()
    async with open_delegation(tmp_path, store_url, obey, gate.register) as world:
        taken_back = await world.say(do(nap("one", background=True)))
        assert taken_back.turn is not None
        old = taken_back.turn.conversation_id
        await world.engine.queue_rewind(old, to=0)
        await world.say("hello")
        await world.say(do(nap("two", background=True)))
        new = await world.engine.start_new_conversation(CHAT)
        await world.say("hello again")
        gate.open()
        await world.settle()
        reports = "\n".join(await _reports(world, old))
        assert "Late: messages were taken back since it was asked for." in reports
        assert "Late: the conversation was closed since it was asked for." in reports
        assert reports.count("The task ") == 2
        assert not await _reports(world, new)
        assert [child.parent_conversation for child in await world.children()] == [old, old]
