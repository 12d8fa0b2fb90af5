"""The request of a step can be rebuilt exactly from the store."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from pydantic_ai import Agent
from structlog.testing import capture_logs

from clew.errors import NotFound, OperationRefused
from clew.testing import Calls, Fail, ScriptedCall, Text, reply_in_sequence
from tests.failing.desk import FORMATS, always, open_desk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.failing.desk import Format


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    with capture_logs():
        yield


@pytest.mark.parametrize("form", FORMATS)
async def test_each_step_of_a_turn_gives_the_request_that_was_sent_for_it(
    tmp_path: Path, form: Format
) -> None:
    """Plain and streamed, with tools, after a failure, and with the instructions of that time."""
    told = itertools.count(1)
    agent = Agent(instructions=lambda: f"You have been told {next(told)} times.")

    @agent.tool_plain
    def look(at: str) -> str:
        return f"seen: {at}"

    async with open_desk(tmp_path, form, agent=agent) as desk:
        for stream in (False, True):
            calls = Calls(
                (ScriptedCall("look", {"at": "a"}), ScriptedCall("look", {"at": "b"})),
                text="I look.",
            )
            desk.play(reply_in_sequence([Fail("overloaded"), calls, Text("done")]))
            said = await desk.say("talk", "look at both", stream=stream)
            assert said.ended.turn is not None
            turn = said.ended.turn.id
            failed, *sent = said.requests
            assert failed.body == sent[0].body, "rendered once, although it failed"
            for step, captured in enumerate(sent, 1):
                again = await desk.engine.find_recorded_request(turn, step)
                assert again.body == captured.body
                assert again.stream is stream
                assert again.instructions == "You have been told 1 times."
            with pytest.raises(NotFound, match=f"{turn}, step 3"):
                await desk.engine.find_recorded_request(turn, 3)


async def test_a_step_that_failed_gives_the_last_request_made_for_it(tmp_path: Path) -> None:
    async with open_desk(tmp_path, "chat", "messages") as desk:
        talk = await desk.begin()
        desk.play(always(Fail("overloaded")), always(Fail("server")))
        said = await desk.say(talk, "do it")
        assert said.ended.turn is not None
        again = await desk.engine.find_recorded_request(said.ended.turn.id, 1)
        assert again.model == "anthropic:fake-model"
        assert again.body == said.by_provider[1][-1].body


async def test_a_step_that_failed_before_its_request_has_none(tmp_path: Path) -> None:
    agent = Agent(retries=0)

    @agent.tool_plain
    def look(at: int) -> str:
        return f"seen: {at}"

    async with open_desk(tmp_path, "chat", agent=agent) as desk:
        talk = await desk.begin()
        desk.play(always(Calls((ScriptedCall("look", {"at": "no number"}),))))
        said = await desk.say(talk, "look")
        assert said.ended.turn is not None
        with pytest.raises(OperationRefused, match="does not end in what a model is to be sent"):
            await desk.engine.find_recorded_request(said.ended.turn.id, 2)
