"""Notices with an answer: that it is truncated, that another model gave it."""

from __future__ import annotations

import io
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from structlog.testing import capture_logs

from clew.cli.event_printer import EventPrinter
from clew.cli.output import Output
from clew.core.route import local_route
from clew.testing import Calls, Fail, LengthStop, ScriptedCall, Text
from tests.failing.desk import FORMATS, always, open_desk
from tests.integration.api_server import events_of, serving, settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from tests.failing.desk import Desk, Format

CUT = "The answer is incomplete"
STAND_IN = "Another model is asked"


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    with capture_logs():
        yield


@asynccontextmanager
async def api(desk: Desk, home: Path) -> AsyncGenerator[httpx2.AsyncClient]:
    """The HTTP interface over a desk's engine."""
    settings = settings_for(home, token=None)
    async with (
        serving(desk.engine, settings) as url,
        httpx2.AsyncClient(base_url=url, timeout=60) as http,
    ):
        yield http


async def chat(http: httpx2.AsyncClient, *, key: str, stream: bool) -> dict[str, Any]:
    """The body of an answer, or the last chunk of a stream."""
    answer = await http.post(
        "/v1/chat/completions",
        json={"messages": [{"role": "user", "content": "hello"}], "stream": stream},
        headers={"X-Clew-Conversation": "talk", "Idempotency-Key": key},
        timeout=60,
    )
    return events_of(answer.text)[-1] if stream else answer.json()


async def printed(desk: Desk) -> tuple[str, str]:
    """Return the output of ``clew chat`` for an answer on both streams."""
    out, notes = io.StringIO(), io.StringIO()
    teller = EventPrinter(Output(out), Output(notes))
    accepted = await desk.engine.submit("hello", target=local_route("talk"))
    async for event in desk.engine.stream_input(accepted):
        teller.print_event(event)
    return out.getvalue(), notes.getvalue()


@pytest.mark.parametrize("form", FORMATS)
async def test_an_answer_truncated_by_the_models_limit_is_marked(
    tmp_path: Path, form: Format
) -> None:
    async with open_desk(tmp_path, form) as desk:
        desk.play(always(LengthStop("as far as it")))
        told = await desk.say("talk", "hello")
        assert (told.text, told.ended.cut, told.outcome) == ("as far as it", True, "answered")
        assert [notice[: len(CUT)] for notice in told.ended.notices] == [CUT]
        assert told.context == ["hello", "as far as it"], "the notice is not for the model"
        out, notes = await printed(desk)
        assert out == "as far as it\n"
        assert CUT in notes
        desk.play(always(Text("whole")))
        whole = await desk.say("talk", "hello")
        assert (whole.text, whole.ended.cut, whole.ended.notices) == ("whole", False, ())


async def test_openai_clients_see_that_an_answer_is_cut_also_when_they_ask_again(
    tmp_path: Path,
) -> None:
    async with open_desk(tmp_path, "chat") as desk, api(desk, tmp_path) as http:
        desk.play(always(LengthStop("as far as it")))
        for stream in (False, True):
            first, again = [await chat(http, key=f"k{stream}", stream=stream) for _ in range(2)]
            assert first["choices"][0]["finish_reason"] == "length"
            assert CUT in json.dumps(first["clew"]["notices"])
            assert (again["choices"], again["clew"]) == (first["choices"], first["clew"])


async def test_a_fallback_is_reported_on_every_front(tmp_path: Path) -> None:
    async with open_desk(tmp_path, "chat", "chat") as desk, api(desk, tmp_path) as http:
        desk.play(always(Fail("authentication")), always(Text("the stand-in answers")))
        out, notes = await printed(desk)
        assert out == "the stand-in answers\n"
        assert notes.count(STAND_IN) == 1
        # Once per outage and conversation: here another one begins.
        desk.play(always(Text("back")), always(Text("not asked")))
        assert (await chat(http, key="1", stream=True))["clew"]["notices"] == []
        desk.play(always(Fail("authentication")), always(Text("the stand-in answers")))
        told = await chat(http, key="2", stream=False)
        assert told["choices"][0]["message"]["content"] == "the stand-in answers"
        assert STAND_IN in told["clew"]["notices"][0]


class Weather(BaseModel):
    """A form that an agent fills in."""

    sky: str


async def test_the_result_of_an_output_tool_is_the_answer(tmp_path: Path) -> None:
    """There is no text then: without it the turn would end in silence."""
    agent = Agent(output_type=Weather)
    async with open_desk(tmp_path, "chat", agent=agent) as desk:
        desk.play(always(Calls((ScriptedCall("final_result", {"sky": "clear"}),))))
        told = await desk.say("talk", "what is the weather like?")
        assert told.outcome == "answered"
        assert told.text == "sky='clear'"
