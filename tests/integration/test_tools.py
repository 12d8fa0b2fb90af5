"""Tools that hang, raise, return too much or too odd: the turn goes on, and it is told."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai import BinaryContent, Tool, ToolReturn
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from structlog.testing import capture_logs

from clew.agent import tool_results
from clew.core.turn import TurnOutcome
from tests.line.world import open_world

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from tests.line.tools import Tools


class Odd:
    pass


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError


class Last(BaseException):
    """No exception that anybody expects."""


def _raises(error: BaseException) -> Callable[[], object]:
    def act() -> object:
        raise error

    return act


def _endless() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


#: Behaviours of a tool, and the result that the model gets.
DOINGS: dict[str, tuple[Callable[[], object], str]] = {
    "raises": (_raises(ValueError("no luck")), "error: ValueError: no luck"),
    "raises what cannot be said": (_raises(Mute()), "error: Mute"),
    "ends the program": (_raises(SystemExit(2)), "error: RuntimeError: it tried to end"),
    "ends it in its own way": (_raises(Last()), "error: RuntimeError: it tried to end"),
    "ends it as a generator": (_raises(GeneratorExit()), "error: RuntimeError: it tried to end"),
    "cancels itself": (_raises(asyncio.CancelledError()), "error: RuntimeError: it was cancelled"),
    "stops an iteration": (_raises(StopIteration("x")), "error: RuntimeError: "),
    "returns nothing": (lambda: None, ""),
    "returns bytes": (lambda: b"\xff\x00", "_wA="),
    "returns an object": (Odd, "<tests.integration.test_tools.Odd object"),
    "returns itself within itself": (_endless, "[["),
    "returns half a character": (lambda: {"a": "\ud800"}, "{'a':"),
    "returns an object in a result": (lambda: ToolReturn(Odd(), metadata=Odd()), "<tests."),
    "returns 10 MB of text": (lambda: "x" * 10_000_000, "xxx"),
    "returns 10 MB of lines": (lambda: ["line"] * 1_500_000, '["line",'),
    "returns a file of 10 MB": (
        lambda: BinaryContent(bytes(10_000_000), media_type="image/png"),
        "[a file of 10,000,000 bytes (image/png), left out]",
    ),
    "returns a file of 10 MB in a result": (
        lambda: ToolReturn("seen", content=[BinaryContent(bytes(10_000_000), media_type="a/b")]),
        "seen",
    ),
}


@pytest.mark.parametrize("threaded", [False, True], ids=["in the loop", "in a thread"])
async def test_whatever_a_tool_does_the_model_is_informed_and_the_turn_continues(
    store_url: str, tmp_path: Path, threaded: bool
) -> None:
    tools = [_doing(threaded)]
    # Rendered for a terminal, 10 MB of variables in a traceback would take seconds.
    with capture_logs():
        async with open_world(store_url, tmp_path, tools=lambda _: tools) as world:
            ended = await world.end(await world.say(f"a: {'do ' * len(DOINGS)}"))
            assert ended.text == "answer to a"
            told = _results(world.model.sent[-1])
            wrong = {
                name: text[:200]
                for (name, (_, expected)), text in zip(DOINGS.items(), told, strict=True)
                if not text.startswith(expected) or len(text) > tool_results.MAX_RESULT_CHARS + 200
            }
            assert wrong == {}
            log = await world.log(ended.conversation)
            assert (
                max(len(entry.message) for entry in log)
                < len(DOINGS) * tool_results.MAX_RESULT_CHARS
            )
            assert await world.check() == []


def _doing(threaded: bool) -> Tool[Any]:
    acts = [act for act, _ in DOINGS.values()]

    def do(what: str) -> object:
        """Do the thing with this number."""
        return acts[int(what.removeprefix("a0"))]()

    async def do_in_loop(what: str) -> object:
        """Do the thing with this number."""
        return do(what)

    return Tool(do, name="do") if threaded else Tool(do_in_loop, name="do")


def _results(messages: Sequence[ModelMessage]) -> list[str]:
    parts = messages[-1].parts
    return [part.model_response_str() for part in parts if isinstance(part, ToolReturnPart)]


class Hanging:
    """Tools that do not come back by themselves, not even when they are cancelled."""

    def __init__(self) -> None:
        #: Released by each call that begins.
        self.begun = asyncio.Semaphore(0)
        self._loop = asyncio.get_running_loop()
        self._open = threading.Event()
        self._open_here = asyncio.Event()

    def free(self) -> None:
        self._open.set()
        self._open_here.set()

    def tools(self, _: Tools) -> list[Tool[Any]]:
        return [
            Tool(self.block, name="block", metadata={"effect": "pure"}),
            Tool(self.cling, name="cling"),
            Tool(self.again, name="again"),
        ]

    def block(self, what: str) -> str:
        """Block a thread."""
        self._loop.call_soon_threadsafe(self.begun.release)
        self._open.wait()
        return "at last"

    async def cling(self, what: str) -> str:
        """Ignore being cancelled."""
        self.begun.release()
        while not self._open_here.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self._open_here.wait()
        return "at last"

    def again(self) -> str:
        """Say the same."""
        return "still running"


@pytest.fixture
async def hanging() -> AsyncGenerator[Hanging]:
    found = Hanging()
    yield found
    found.free()


@pytest.mark.parametrize("tool", ["block", "cling"])
async def test_a_stop_ends_a_turn_whose_tool_hangs(
    store_url: str, tmp_path: Path, hanging: Hanging, tool: str
) -> None:
    async with open_world(store_url, tmp_path, tools=hanging.tools) as world:
        accepted = await world.say(f"a: {tool}")
        await hanging.begun.acquire()
        assert await world.engine.request_stop(accepted.conversation_id)
        # The tool is not freed before the test is over: nobody waits for it.
        ended = await world.end(accepted)
        assert ended.turn is not None
        assert ended.turn.outcome is TurnOutcome.CANCELLED
        _, _, result, notice = await world.shape(ended.conversation)
        assert result.startswith(f"{tool}!cancelled: stopped by the user")
        assert notice == "[stopped by the user]"
        assert (await world.end(await world.say("b:"))).text == "answer to a b"
        assert await world.check() == []


@pytest.mark.parametrize("tool", ["block", "cling"])
async def test_a_tool_that_takes_too_long_is_abandoned_and_the_model_is_informed(
    store_url: str, tmp_path: Path, hanging: Hanging, tool: str
) -> None:
    async with open_world(store_url, tmp_path, tools=hanging.tools, longest_call=0.05) as world:
        ended = await world.end(await world.say(f"a: {tool}"))
        assert ended.text == "answer to a"
        (told,) = _results(world.model.sent[-1])
        assert told.startswith("error: TimeoutError: it took longer than 0.05 s and was abandoned")


async def test_tools_that_hang_leave_threads_for_others(
    store_url: str, tmp_path: Path, hanging: Hanging
) -> None:
    async with open_world(store_url, tmp_path, tools=hanging.tools) as world:
        accepted = await world.say(f"a: {'block ' * 50}")
        await hanging.begun.acquire()
        assert await world.engine.request_stop(accepted.conversation_id)
        await world.end(accepted)
        world.model.script = _calling_again(times=1)
        assert (await world.end(await world.say("b:"))).text == "enough"


def test_a_thread_that_hangs_does_not_keep_the_program_from_ending() -> None:
    program = """
import threading
from clew.agent.executor import DaemonThreadExecutor
DaemonThreadExecutor().submit(threading.Event().wait)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@pytest.mark.both_databases
async def test_a_released_turn_continues_elsewhere_by_the_effect_of_its_open_call(
    store_url: str, tmp_path: Path, hanging: Hanging
) -> None:
    async with open_world(store_url, tmp_path, tools=hanging.tools) as world:
        accepted = await world.say("a: block cling")
        await hanging.begun.acquire()
        await hanging.begun.acquire()
    hanging.free()
    async with open_world(store_url, tmp_path, tools=hanging.tools) as world:
        ended = await world.end(accepted)
        assert ended.text == "answer to a"
        again, unknown = _results(world.model.sent[-1])
        assert again == "at last"
        assert unknown.startswith("interrupted, outcome unknown: ")


def _calling_again(*, times: int, tool: str = "again") -> Callable[..., ModelResponse]:
    """The same call with the same id, so many times; then an answer."""

    def respond(messages: Sequence[ModelMessage]) -> ModelResponse:
        asked = sum(isinstance(m, ModelResponse) and bool(m.tool_calls) for m in messages[-20:])
        if asked >= times:
            return ModelResponse(parts=[TextPart("enough")])
        return ModelResponse(parts=[ToolCallPart(tool, {}, "call_1")])

    return respond


async def test_a_model_that_repeats_a_call_five_times_is_stopped_and_the_person_notified(
    store_url: str, tmp_path: Path, hanging: Hanging
) -> None:
    async with open_world(store_url, tmp_path, tools=hanging.tools) as world:
        world.model.script = _calling_again(times=1000)
        ended = await world.end(await world.say("a:"))
        assert ended.turn is not None
        assert (ended.turn.outcome, ended.turn.error_code) == (TurnOutcome.FAILED, "repeated_calls")
        assert "it called again 5 times in a row, with the same result each time" in ended.text
        assert len(world.model.sent) == 5
    async with open_world(store_url, tmp_path, tools=hanging.tools) as world:
        assert await world.end(await world.say("b:")) != ended
        assert [len(world.model.sent), await world.check()] == [1, []]


async def test_call_ids_that_a_provider_repeats_are_made_unique(
    store_url: str, tmp_path: Path, hanging: Hanging
) -> None:
    def respond(messages: Sequence[ModelMessage]) -> ModelResponse:
        if len(messages) > 5:
            return ModelResponse(parts=[TextPart("enough")])
        return ModelResponse(parts=[ToolCallPart("again", {}, "call_1") for _ in range(3)])

    async with open_world(store_url, tmp_path, tools=hanging.tools) as world:
        world.model.script = respond
        ended = await world.end(await world.say("a:"))
        assert ended.text == "enough"
        calls = [call for entry in await world.log(ended.conversation) for call in entry.calls]
        assert len(set(calls)) == len(calls) == 9
        assert await world.check() == []
