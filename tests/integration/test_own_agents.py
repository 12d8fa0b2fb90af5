"""Agents of the user's own: what their code does wrong is told so, and breaks no conversation."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.capabilities import AbstractCapability, HandleDeferredToolCalls
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset, ToolsetTool
from structlog.testing import capture_logs

from clew.agent.failover import RetryPolicy
from clew.agent.limits import CodeLimits
from clew.agent.loop import AgentLoop
from clew.agent.models import close_models_on_exit
from clew.core.events import InputCompleted
from clew.core.route import local_route
from clew.core.tool_facts import PathFact, ToolFacts
from clew.engine.engine import Engine
from clew.hooks.specs import hookimpl
from clew.runtime import build_services
from clew.store.opening import open_store
from clew.testing import Calls, FakeProvider, Hang, ScriptedCall, Text, reply_in_sequence
from tests.contract import invariants
from tests.integration.api_server import settings_for, until
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping
    from pathlib import Path

    from clew.store.contract import Store
    from clew.testing import Reply

Made = Agent[Any, Any]


@dataclass(frozen=True, kw_only=True)
class Desk:
    engine: Engine
    provider: FakeProvider
    store: Store
    loop: AgentLoop

    async def say(self, text: str) -> InputCompleted:
        said = await self.engine.submit(text, target=local_route("talk"))
        events = [event async for event in self.engine.stream_input(said)]
        assert isinstance(events[-1], InputCompleted)
        return events[-1]


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    with capture_logs():
        yield


@asynccontextmanager
async def open_desk(
    home: Path,
    agent: Made,
    *replies: Reply,
    plugin: object = None,
    code: CodeLimits = CodeLimits(),  # noqa: B008  (frozen)
) -> AsyncGenerator[Desk]:
    with FakeProvider(reply_in_sequence(replies)) as provider:
        async with (
            close_models_on_exit(),
            await open_store("sqlite:///clew.db", home=home) as store,
        ):
            means = build_services(settings_for(home, provider=provider), store)
            means.models.retry_policy = RetryPolicy(first_wait=0.001)
            if plugin is not None:
                means.hooks.plugins.register_plugin(plugin, "changing")
            means = replace(means, loop=AgentLoop(agent, max_steps=50, code=code))
            async with Engine(means, role="test", version="0") as engine:
                yield Desk(engine=engine, provider=provider, store=store, loop=means.loop)
            assert await store.read(invariants.check) == []


def _without_a_name() -> str:
    return {"nobody": ""}["name"]


def _in_its_instructions() -> Made:
    return Agent(instructions=_without_a_name)


def _in_a_validator() -> Made:
    agent: Made = Agent()

    @agent.output_validator
    def refuse(_: str) -> str:
        return _without_a_name()

    return agent


@pytest.mark.parametrize(
    ("make", "asked"), [(_in_its_instructions, 0), (_in_a_validator, 1)], ids=["before", "after"]
)
async def test_a_failure_of_the_agents_code_is_reported_as_such_without_a_new_request(
    tmp_path: Path, make: Any, asked: int
) -> None:
    async with open_desk(tmp_path, make(), Text("one"), Text("two")) as desk:
        ended = await desk.say("hello")
        assert ended.turn is not None
        assert ended.turn.error_code == "agent_code"
        assert "the agent's own code failed (KeyError: 'name')" in ended.text
        assert len(desk.provider.requests) == asked


async def _never(*_: object, **__: object) -> Any:
    await asyncio.Event().wait()


class Closed(FunctionToolset[Any]):
    """A toolset whose server never comes."""

    async def __aenter__(self) -> Self:
        await _never()
        return self


class Silent(FunctionToolset[Any]):
    """A toolset whose server comes and says nothing."""

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        await _never()
        return await super().get_tools(ctx)


class Broken(FunctionToolset[Any]):
    """A toolset whose server is not there."""

    async def __aenter__(self) -> Self:
        raise ConnectionRefusedError("nobody listens")


def _dynamic() -> Made:
    agent: Made = Agent()
    agent.toolset(_never)
    return agent


def _validator() -> Made:
    agent: Made = Agent()
    agent.output_validator(_never)
    return agent


@dataclass
class Hanging(AbstractCapability[Any]):
    """A capability one of whose hooks never ends."""

    hook: str

    def __post_init__(self) -> None:
        setattr(self, self.hook, _never)


#: Far apart: both would pass while a busy machine stands still, and the outer one would be named.
SHORT = CodeLimits(toolset=timedelta(seconds=0.2), agent=timedelta(seconds=1))
OPENED = "the toolset home-server could not be opened: it did not come within 0.2 s"
LISTED = "the toolset home-server could not list its tools: it did not come within 0.2 s"


@pytest.mark.parametrize(
    ("make", "code", "said", "asked"),
    [
        (lambda: Agent(toolsets=[Closed(id="home-server")]), "toolset", OPENED, 0),
        (lambda: Agent(toolsets=[Silent(id="home-server")]), "toolset", LISTED, 0),
        (
            lambda: Agent(toolsets=[Broken(id="home-server")]),
            "toolset",
            "ConnectionRefusedError: nobody",
            0,
        ),
        (_dynamic, "agent_code", "before the", 0),
        (lambda: Agent(instructions=_never), "agent_code", "before the model was asked", 0),
        (
            lambda: Agent(capabilities=[Hanging("before_model_request")]),
            "agent_code",
            "before the model was asked",
            0,
        ),
        (
            lambda: Agent(capabilities=[Hanging("after_model_request")]),
            "agent_code",
            "after the model had answered",
            1,
        ),
    ],
    ids=["opens", "lists", "broken", "dynamic", "instructions", "before", "after"],
)
@pytest.mark.parametrize("followed", [False, True], ids=["plain", "stream"])
async def test_developer_code_that_never_ends_is_named(
    tmp_path: Path, make: Any, code: str, said: str, asked: int, followed: bool
) -> None:
    async with open_desk(tmp_path, make(), Text("one"), Text("two"), code=SHORT) as desk:
        if followed:
            ended = await desk.say("hello")
        else:
            accepted = await desk.engine.submit("hello", target=local_route("talk"))
            ended = await wait_until(
                lambda: desk.engine.get_input_result(accepted.inbox_id), "the end of the turn"
            )
        assert ended is not None
        assert ended.turn is not None
        assert ended.turn.error_code == code
        assert said in ended.text
        assert "provider" not in ended.text
        assert len(desk.provider.requests) == asked


async def test_a_validator_that_never_ends_ends_the_turn(tmp_path: Path) -> None:
    async with open_desk(tmp_path, _validator(), Text("one"), code=SHORT) as desk:
        desk.loop.longest_call = timedelta(seconds=0.2)
        ended = await desk.say("hello")
        assert "was not done after the model had answered" in ended.text


async def test_a_provider_that_is_silent_is_still_told_as_that(tmp_path: Path) -> None:
    async with open_desk(tmp_path, Agent(), Hang(), Hang(), Text("late")) as desk:
        desk.loop.silence = timedelta(seconds=0.2)
        ended = await desk.say("hello")
        assert ended.turn is not None
        assert ended.turn.error_code == "timeout"


OUTSIDE = ToolDefinition(name="outside", parameters_json_schema={"type": "object"})


@pytest.mark.parametrize("output", [[str], [str, DeferredToolRequests]], ids=["text", "deferred"])
async def test_a_call_for_an_external_executor_has_a_result_too(
    tmp_path: Path, output: Any
) -> None:
    agent = Agent(output_type=output, toolsets=[ExternalToolset([OUTSIDE])])
    calls = Calls((ScriptedCall("outside", {}), ScriptedCall("outside", {})))
    async with open_desk(tmp_path, agent, calls, Text("so not"), Text("on")) as desk:
        assert (await desk.say("do it")).text == "so not"
        assert (await desk.say("and?")).text == "on"
        assert (
            desk.provider.requests[-1].body.decode().count("error: not run: this tool is run") == 2
        )


async def test_an_agent_that_carries_them_out_itself_is_asked_first(tmp_path: Path) -> None:
    def handle(_: Any, requests: DeferredToolRequests) -> DeferredToolResults:
        return DeferredToolResults(calls={call.tool_call_id: "done" for call in requests.calls})

    agent = Agent(
        toolsets=[ExternalToolset([OUTSIDE])], capabilities=[HandleDeferredToolCalls(handle)]
    )
    calls = Calls((ScriptedCall("outside", {}),))
    async with open_desk(tmp_path, agent, calls, Text("yes")) as desk:
        assert (await desk.say("do it")).text == "yes"
        assert "done" in desk.provider.requests[-1].body.decode()


class Adding:
    """A plugin that changes what a tool is called with."""

    def __init__(self, names: object) -> None:
        self._names = names

    @hookimpl
    def pre_tool_call(self) -> dict[str, Any]:
        return {"args": {"names": self._names}}


@pytest.mark.parametrize(
    ("names", "told"), [(["b", "a"], "['a', 'b']"), (5, "error: ValidationError")]
)
@pytest.mark.parametrize("asked", [False, True], ids=["at once", "approved"])
async def test_changed_arguments_are_what_the_tool_declares(
    tmp_path: Path, names: object, told: str, asked: bool
) -> None:
    agent: Made = Agent()

    @agent.tool_plain(requires_approval=asked)
    def greet(names: set[str]) -> str:  # pyright: ignore[reportUnusedFunction]
        return str(sorted(names & {"a", "b"}))

    calls = Calls((ScriptedCall("greet", {"names": ["x"]}),))
    async with open_desk(tmp_path, agent, calls, Text("ok"), plugin=Adding(names)) as desk:
        said = await desk.engine.submit("greet", target=local_route("talk"))
        if asked:
            await until(lambda: _approve(desk, said.conversation_id))
        await until(lambda: _ended(desk, said.inbox_id))
        assert told in desk.provider.requests[-1].body.decode()


class Redirecting:
    """A plugin that changes where a tool writes."""

    @hookimpl
    def pre_tool_call(self, args: dict[str, Any]) -> dict[str, Any]:
        return {"args": {**args, "path": "/srv/elsewhere"}}


async def test_what_is_shown_and_judged_is_what_runs_also_changed_by_a_plugin_and_long(
    tmp_path: Path,
) -> None:
    agent: Made = Agent()
    ran: list[tuple[str, str]] = []
    text = "".join(f"line {n}\n" for n in range(25_000))

    def make_facts(args: Mapping[str, Any]) -> ToolFacts:
        path = PathFact(path=args["path"], inside=args["path"].startswith("/work"), writes=True)
        return ToolFacts(paths=(path,), preview=f"+ {len(args['text'])} characters")

    @agent.tool_plain(metadata={"effect": "idempotent", "facts": make_facts})
    def write(path: str, text: str) -> str:  # pyright: ignore[reportUnusedFunction]
        ran.append((path, text))
        return "written"

    calls = Calls((ScriptedCall("write", {"path": "/work/a", "text": text}),))
    async with open_desk(tmp_path, agent, calls, Text("ok"), plugin=Redirecting()) as desk:
        said = await desk.engine.submit("write", target=local_route("talk"))
        await until(lambda: _asks(desk, said.conversation_id))
        (asked,) = await desk.engine.list_approvals(said.conversation_id)
        assert asked.why == "by default: /srv/elsewhere is outside of the workspace"
        assert asked.preview == f"+ {len(text)} characters"
        assert asked.offer is not None
        assert asked.offer.says == "write: writing in /srv"
        await until(lambda: _approve(desk, said.conversation_id))
        await until(lambda: _ended(desk, said.inbox_id))
        assert ran == [("/srv/elsewhere", text)]
        assert json.loads(asked.args) == {"path": ran[0][0], "text": ran[0][1]}


async def _asks(desk: Desk, conversation: Any) -> bool:
    return bool(await desk.engine.list_approvals(conversation))


async def _ended(desk: Desk, inbox_id: Any) -> bool:
    return await desk.engine.get_input_result(inbox_id) is not None


async def _approve(desk: Desk, conversation: Any) -> bool:
    for question in await desk.engine.list_approvals(conversation):
        await desk.engine.answer_approval(question.id, yes=True)
        return True
    return False
