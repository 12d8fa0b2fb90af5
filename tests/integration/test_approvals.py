"""Approvals: questions that are stored, and calls that run once somebody said yes."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import TYPE_CHECKING

import pytest
from pydantic_ai import ApprovalRequired, Tool
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from clew.core.approval import ApprovalState
from clew.core.turn import TurnOutcome
from clew.errors import InvalidTransition
from clew.store.opening import open_store
from clew.store.transactions import approvals
from tests.line.clock import ShiftedClock
from tests.line.world import open_world

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from clew.core.approval import Approval
    from clew.core.ids import ConversationId
    from clew.store.contract import Tx
    from tests.line.world import World


@pytest.fixture
async def world(store_url: str, tmp_path: Path) -> AsyncGenerator[World]:
    async with open_world(store_url, tmp_path) as found:
        yield found
        assert await found.check() == []


async def _questions(world: World, conversation: ConversationId) -> Sequence[Approval]:
    await world.waiting(conversation)
    return await world.engine.list_approvals(conversation)


@pytest.mark.both_databases
async def test_calls_without_approval_run_at_once_and_all_results_are_one_request(
    world: World,
) -> None:
    accepted = await world.say("a: pay look dare send")
    questions = await _questions(world, accepted.conversation_id)
    # Asked side by side, they are stored in any order.
    dare, pay = sorted(questions, key=lambda question: question.tool)
    assert (dare.tool, pay.tool) == ("dare", "pay")
    assert set(world.tools.ran) == {"look a01", "send a03"}
    assert await world.store.inner.read(_holders) == [None]
    await world.engine.answer_approval(dare.id, yes=True)
    await world.engine.answer_approval(pay.id, yes=True)
    ended = await world.end(accepted)
    asked = ["pay?", "look?", "dare?", "send?"]
    got = ["pay!", "look!", "dare!", "send!"]
    assert await world.shape(ended.conversation) == ["a", *asked, *got, '"answer to a"']
    assert len(await world.log(ended.conversation)) == 4
    assert set(world.tools.ran.values()) == {1}
    assert len(world.model.sent) == 2


def _holders(t: Tx) -> list[object]:
    return [row[0] for row in t.fetch_all("SELECT owner FROM lease")]


async def test_the_arguments_that_were_shown_are_those_that_run(
    store_url: str, tmp_path: Path
) -> None:
    command = "echo " + "x" * 5000 + "; rm -rf /"
    ran: list[str] = []

    def wipe(what: str) -> str:
        """Wipe it."""
        ran.append(what)
        return "wiped"

    def respond(messages: Sequence[ModelMessage]) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("wipe", {"what": command}, "call_1")])

    tools = [Tool(wipe, requires_approval=True)]
    async with open_world(store_url, tmp_path, tools=lambda _: tools) as world:
        world.model.script = respond
        accepted = await world.say("a:")
        question = await world.question(accepted.conversation_id)
    async with open_world(store_url, tmp_path, tools=lambda _: tools) as world:
        world.model.script = respond
        await world.engine.answer_approval(question.id, yes=True)
        await world.end(accepted)
    assert [_hash(what) for what in ran] == [_hash(json.loads(question.args)["what"])]
    assert ran == [command]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(("tool", "yes"), [("pay", True), ("dare", True), ("dare", False)])
async def test_a_question_outlives_a_restart_and_so_does_its_answer(
    store_url: str, tmp_path: Path, tool: str, yes: bool
) -> None:
    async with open_world(store_url, tmp_path) as world:
        accepted = await world.say(f"a: {tool}")
        question = await world.question(accepted.conversation_id)
    async with await open_store(store_url, home=tmp_path) as store:
        # Nobody is there to see it.
        state = ApprovalState.APPROVED if yes else ApprovalState.DENIED
        assert await store.read(approvals.list_open_approvals, accepted.conversation_id) == [
            question
        ]
        await store.write(approvals.answer_approval, question.id, state, answered_by="me")
    async with open_world(store_url, tmp_path) as world:
        await world.end(accepted)
        assert sum(world.tools.ran.values()) == int(yes)
        why = "" if yes else "not approved: the person said no"
        shape = ["a", f"{tool}?", f"{tool}!{why}", '"answer to a"']
        assert await world.shape(accepted.conversation_id) == shape
        assert await world.check() == []


@pytest.mark.parametrize("tool", ["pay", "dare"])
async def test_an_approved_call_whose_run_was_cut_off_is_not_run_again(
    store_url: str, tmp_path: Path, tool: str
) -> None:
    async with open_world(store_url, tmp_path) as world:
        accepted = await world.say(f"a: {tool}")
        question = await world.question(accepted.conversation_id)
        begun = asyncio.Event()

        async def hang() -> None:
            begun.set()
            await world.over.wait()

        world.points.arm("journal.record_intent after", hang)
        await world.engine.answer_approval(question.id, yes=True)
        await begun.wait()
    async with open_world(store_url, tmp_path) as world:
        await world.end(accepted)
        assert not world.tools.ran
        _, _, result, _ = await world.shape(accepted.conversation_id)
        assert result.startswith(f"{tool}!interrupted, outcome unknown")
        assert await world.check() == []


@pytest.mark.parametrize("restarted", [False, True])
async def test_an_unanswered_question_expires_as_denied(
    store_url: str, tmp_path: Path, restarted: bool
) -> None:
    clock = ShiftedClock()
    async with open_world(store_url, tmp_path, clock=clock) as world:
        accepted = await world.say("a: pay")
        question = await world.question(accepted.conversation_id)
        if not restarted:
            clock.advance(hours=25)
            with pytest.raises(
                InvalidTransition, match="approval cannot go from expired to approved"
            ):
                await world.engine.answer_approval(question.id, yes=True)
            await world.end(accepted)
    clock.advance(hours=25)
    async with open_world(store_url, tmp_path, clock=clock) as world:
        await world.end(accepted)
        with pytest.raises(InvalidTransition, match="approval cannot go from expired to approved"):
            await world.engine.answer_approval(question.id, yes=True)
        assert not world.tools.ran
        told = "pay!not approved: nobody answered in time"
        shape = ["a", "pay?", told, '"answer to a"']
        assert await world.shape(accepted.conversation_id) == shape


async def test_of_many_answers_the_first_counts_and_the_others_are_informed(world: World) -> None:
    accepted = await world.say("a: pay")
    question = await world.question(accepted.conversation_id)
    answers = await asyncio.gather(
        *[
            world.engine.answer_approval(question.id, yes=n % 2 == 0, by=f"person {n}")
            for n in range(10)
        ],
        return_exceptions=True,
    )
    first = [answer for answer in answers if not isinstance(answer, BaseException)]
    late = [answer for answer in answers if isinstance(answer, InvalidTransition)]
    assert (len(first), len(late)) == (1, 9)
    await world.end(accepted)
    assert sum(world.tools.ran.values()) == int(first[0].state is ApprovalState.APPROVED)
    with pytest.raises(InvalidTransition):
        await world.engine.answer_approval(question.id, yes=True, by="late")


async def test_a_stop_while_the_turn_waits_ends_it_and_what_was_allowed_does_not_run(
    world: World,
) -> None:
    accepted = await world.say("a: pay pay")
    allowed, other = await _questions(world, accepted.conversation_id)
    await world.engine.answer_approval(allowed.id, yes=True)
    assert await world.engine.request_stop(accepted.conversation_id)
    ended = await world.end(accepted)
    assert ended.turn is not None
    assert ended.turn.outcome is TurnOutcome.CANCELLED
    assert not world.tools.ran
    with pytest.raises(InvalidTransition, match="approval cannot go from denied to approved"):
        await world.engine.answer_approval(other.id, yes=True)
    assert (await world.end(await world.say("b:"))).text == "answer to a b"


async def test_an_answer_that_comes_while_other_calls_run_is_not_lost(world: World) -> None:
    answered = asyncio.Event()

    async def answer_meanwhile() -> None:
        await world.until(lambda: _is_asked(world))
        (question,) = await world.engine.list_approvals(await world.engine.resolve_name("talk"))
        await world.engine.answer_approval(question.id, yes=True)
        answered.set()

    world.points.arm("look begins", answer_meanwhile)
    accepted = await world.say("a: look pay")
    assert (await world.end(accepted)).text == "answer to a"
    assert answered.is_set()
    assert world.tools.ran["pay a01"] == 1


async def _is_asked(world: World) -> bool:
    return bool(await world.engine.list_approvals(await world.engine.resolve_name("talk")))


async def test_a_tool_that_asks_although_it_was_approved_fails(
    store_url: str, tmp_path: Path
) -> None:
    async def never(what: str) -> str:
        """Never be content."""
        raise ApprovalRequired

    tools = [Tool(never, metadata={"effect": "pure"})]
    async with open_world(store_url, tmp_path, tools=lambda _: tools) as world:
        accepted = await world.say("a: never")
        question = await world.question(accepted.conversation_id)
        await world.engine.answer_approval(question.id, yes=True)
        await world.end(accepted)
        told = "never!error: it asks for approval, which it was given"
        shape = ["a", "never?", told, '"answer to a"']
        assert await world.shape(accepted.conversation_id) == shape
