"""A tool that calls others: it waits with them, and no text is taken for a value."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from clew.agent.protocols import CallSuspended
from clew.agent.tool_results import NestedCallFailed
from tests.line.nesting import OUTER, CodeMode, Script
from tests.line.world import open_world

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from clew.core.approval import Approval
    from clew.core.inbox import AcceptResult
    from tests.line.world import World

#: The outer call is in the journal, or is not.
KINDS = ["tool", "code mode"]


def respond(messages: Sequence[ModelMessage]) -> ModelResponse:
    """Run the script once, beside a call of its own."""
    if len(messages) > 1:
        return ModelResponse(parts=[TextPart("done")])
    return ModelResponse(
        parts=[
            ToolCallPart(OUTER, {"what": "x"}, "call_1"),
            ToolCallPart("send", {"what": "beside"}, "call_2"),
        ]
    )


@asynccontextmanager
async def scripted(url: str, home: Path, kind: str, script: Script) -> AsyncGenerator[World]:
    own = [script.as_tool()] if kind == "tool" else []
    around = [] if own else [CodeMode(script)]
    async with open_world(
        url, home, tools=lambda tools: [*tools.make(), *own], capabilities=around
    ) as world:
        world.model.script = respond
        yield world
        assert await world.check() == []


async def next_question(world: World, accepted: AcceptResult) -> Approval:
    """The one open question, once there is one again and the turn waits for it."""

    async def asked() -> bool:
        return bool(await world.engine.list_approvals(accepted.conversation_id))

    await world.until(asked)
    return await world.question(accepted.conversation_id)


@pytest.mark.parametrize("asking", ["pay", "dare"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_script_continues_with_the_result_of_what_was_allowed_and_repeats_nothing(
    store_url: str, tmp_path: Path, kind: str, asking: str
) -> None:
    steps = ["send one", f"{asking} two", "send {}", f"{asking} three"]
    first = Script(steps)
    async with scripted(store_url, tmp_path, kind, first) as world:
        accepted = await world.say("a")
        question = await world.question(accepted.conversation_id)
        assert (question.tool, question.call_id) == (asking, "call_1__2")
        assert dict(world.tools.ran) == {"send one": 1, "send beside": 1}
        assert first.seen == ["send one done"]
    second = Script(steps)
    async with scripted(store_url, tmp_path, kind, second) as world:
        await world.engine.answer_approval(question.id, yes=True)
        question = await next_question(world, accepted)
        assert question.call_id == "call_1__4"
        assert dict(world.tools.ran) == {f"{asking} two": 1, f"send {asking} two done": 1}
    third = Script(steps)
    async with scripted(store_url, tmp_path, kind, third) as world:
        await world.engine.answer_approval(question.id, yes=True)
        await world.end(accepted)
        shape = ["a", f"{OUTER}?", "send?", f"{OUTER}!", "send!", '"done"']
        assert await world.shape(accepted.conversation_id) == shape
        assert dict(world.tools.ran) == {f"{asking} three": 1}
        assert third.seen[1] == f"{asking} two done"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_refusal_is_no_value(store_url: str, tmp_path: Path, kind: str) -> None:
    script = Script(["pay one", "send {}"])
    async with scripted(store_url, tmp_path, kind, script) as world:
        accepted = await world.say("a")
        question = await world.question(accepted.conversation_id)
        await world.engine.answer_approval(question.id, yes=False)
        await world.end(accepted)
        assert dict(world.tools.ran) == {"send beside": 1}
        (told,) = script.seen
        assert isinstance(told, NestedCallFailed)
        assert str(told) == "not approved: the person said no"


@pytest.mark.parametrize(
    ("kind", "steps"),
    [("tool", ["send other"]), ("code mode", ["look one"]), ("code mode", ["send one", "pay x"])],
)
async def test_a_script_that_takes_another_path_is_informed(
    store_url: str, tmp_path: Path, kind: str, steps: list[str]
) -> None:
    async with scripted(store_url, tmp_path, kind, Script(["send one", "pay two"])) as world:
        accepted = await world.say("a")
        question = await world.question(accepted.conversation_id)
    script = Script(steps)
    async with scripted(store_url, tmp_path, kind, script) as world:
        await world.engine.answer_approval(question.id, yes=True)
        await world.end(accepted)
        assert not world.tools.ran
        assert isinstance(script.seen[-1], NestedCallFailed)
        assert "the script took another path" in str(script.seen[-1])


@pytest.mark.parametrize("kind", KINDS)
async def test_calls_beside_the_one_that_waits_end_and_none_begins_after(
    store_url: str, tmp_path: Path, kind: str
) -> None:
    script = Script(["pay one", "send two", "dare three"], together=True)
    async with scripted(store_url, tmp_path, kind, script) as world:
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            begun.set()
            await go_on.wait()

        world.points.arm("send begins", hold)
        accepted = await world.say("a")
        await begun.wait()
        go_on.set()
        await world.waiting(accepted.conversation_id)
        asked = await world.engine.list_approvals(accepted.conversation_id)
        # All that one answer can allow is asked together.
        assert {one.call_id for one in asked} == {"call_1__1", "call_1__3"}
        # It has caught the signals; it was told nothing else, and nothing ran with them.
        assert dict(world.tools.ran) == {"send two": 1, "send beside": 1}
        assert [type(one) for one in script.seen] == [CallSuspended, str, CallSuspended]
        for one in asked:
            await world.engine.answer_approval(one.id, yes=True)
        await world.end(accepted)
        assert world.tools.ran["send after"] == 1
        assert set(world.tools.ran.values()) == {1}
