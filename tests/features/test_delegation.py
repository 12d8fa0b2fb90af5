"""Tasks for other agents: conversations of their own, whose answers come back once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from clew.features.delegation.children import ChildState
from clew.features.delegation.settings import DelegationSettings
from tests.features.delegation_world import CHAT, delegate, do, open_delegation

if TYPE_CHECKING:
    from pathlib import Path


async def test_the_answer_of_a_task_is_the_result_of_the_call_that_asked_for_it(
    tmp_path: Path, store_url: str
) -> None:
    async with open_delegation(tmp_path, store_url) as world:
        end = await world.say(do(delegate("count the apples")))
        assert "done: count the apples" in end.text
        child = await world.child()
        assert (child.state, child.depth, child.woken) == (ChildState.DONE, 1, None)
        assert (child.parent_conversation, child.root) == (end.conversation,) * 2
        task, answer = await world.log(child.conversation_id)
        assert task.is_caused
        assert task.text.startswith("count the apples")
        assert answer.text == "done: count the apples"
        # What it says is not delivered: only the answer of the parent is.
        told = await world.delivered()
        assert [(route, kind) for route, kind, _ in told] == [(CHAT.key, "answer")]
        await world.settle()


async def test_tasks_of_one_answer_run_side_by_side_in_fewer_turns_than_there_are(
    tmp_path: Path, store_url: str
) -> None:
    async with open_delegation(tmp_path, store_url, turns_at_once=4) as world:
        end = await world.say(do(*(delegate(f"task {n}") for n in range(20))))
        assert all(f"done: task {n}" in end.text for n in range(20))
        found = await world.children()
        assert Counter(child.state for child in found) == {ChildState.DONE: 20}
        await world.settle()


async def test_a_tree_with_one_place_waits_for_itself_nowhere(
    tmp_path: Path, store_url: str
) -> None:
    deep = do(delegate(do(delegate("dig"), delegate("dig again"))), delegate("rest"))
    one = DelegationSettings(at_once=1)
    async with open_delegation(tmp_path, store_url, turns_at_once=1, settings=one) as world:
        end = await world.say(deep)
        assert "done: dig" in end.text
        assert "done: dig again" in end.text
        assert "done: rest" in end.text
        found = await world.children()
        assert sorted(child.depth for child in found) == [1, 1, 2, 2]
        await world.settle()
