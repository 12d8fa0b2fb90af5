"""A long conversation in which everything changes that a provider's cache depends on."""

from __future__ import annotations

import itertools
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent
from pydantic_ai.toolsets import FunctionToolset

from clew.agent.loop import AgentLoop
from clew.agent.models import close_models_on_exit
from clew.core.route import local_route
from clew.engine.engine import Engine
from clew.plugin.registry import Features
from clew.runtime import build_services
from clew.store.opening import open_store
from clew.testing import Calls, FakeProvider, ScriptedCall, Text
from tests.integration.api_server import settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Sequence
    from pathlib import Path

    from clew.core.turn import Turn
    from clew.plugin import Registry, TurnContext
    from clew.testing import CapturedRequest, ProviderRequest, Reply

TALK = local_route("talk")
_numbers = itertools.count(1)


def look(at: str) -> str:
    """Look at something."""
    return f"seen: {at}"


def look_closely(at: str, lens: int) -> str:
    """Look at something through a lens."""
    return f"seen: {at}, {lens} times larger"


def smell(at: str) -> str:
    """Smell something."""
    return f"smelt: {at}"


def hear() -> str:
    """Hear what there is."""
    return "heard"


#: The tools after each change: ``look`` takes more, ``smell`` goes, ``hear`` comes.
TOOLS: Sequence[dict[str, Callable[..., str]]] = (
    {"look": look, "smell": smell},
    {"look": look_closely, "smell": smell},
    {"look": look_closely},
    {"look": look_closely, "hear": hear},
)


def _make_agent(tools: dict[str, Callable[..., str]]) -> Agent[Any, Any]:
    toolset: FunctionToolset[Any] = FunctionToolset(id="senses")
    for name, function in tools.items():
        toolset.add_function(function, name=name, metadata={"effect": "pure"})
    agent: Agent[Any, Any] = Agent(instructions="You have senses.", toolsets=[toolset])
    agent.instructions(lambda: f"Rendered as number {next(_numbers)}.")
    toolset.instructions(lambda: f"The senses are as of {next(_numbers)}.")
    return agent


def _register(registry: Registry) -> None:
    async def describe(context: TurnContext) -> str:
        return f"Feature of {context.platform}, {next(_numbers)}."

    registry.add_instructions("story", describe)
    registry.add_instructions("plain", lambda: f"Plain, {next(_numbers)}.")
    registry.add_instructions("broken", lambda: 1 / 0)  # pyright: ignore[reportArgumentType]


@asynccontextmanager
async def open_story_engine(
    home: Path, url: str, provider: FakeProvider, tools: dict[str, Callable[..., str]]
) -> AsyncGenerator[Engine]:
    """An engine of one process, whose agent has these tools."""
    features = Features()
    features.register("story", _register)
    async with close_models_on_exit(), await open_store(url, home=home) as store:
        services = build_services(settings_for(home, provider=provider), store, features)
        loop = AgentLoop(_make_agent(tools), max_steps=9, render=services.loop.render)
        services = replace(services, loop=loop)
        async with Engine(services, role="test", version="0") as engine:
            yield engine


@dataclass(frozen=True, kw_only=True)
class Told:
    """Result of the conversation."""

    requests: list[CapturedRequest] = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]
    #: Requests that were made again from the store, and differed.
    differing: list[int] = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]
    #: Results of calls, as the model got them.
    results: list[str] = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]

    @property
    def broken_prefixes(self) -> list[int]:
        """The requests that do not begin with the whole of the one before."""
        bodies = [_split_body(request) for request in self.requests]
        return [
            number
            for number, (before, after) in enumerate(itertools.pairwise(bodies), 1)
            if before[0] != after[0] or not after[1].startswith(before[1])
        ]


def _split_body(request: CapturedRequest) -> tuple[str, str]:
    """The body without its messages, and the messages without their last bracket."""
    body = dict(request.json or {})
    messages = json.dumps(body.pop("messages"), ensure_ascii=False)
    return json.dumps(body, ensure_ascii=False), messages[:-1]


def answer_with_calls(calls: Sequence[ScriptedCall]) -> Callable[[ProviderRequest], Reply]:
    """A provider that calls a tool in each turn, these by turns, and then answers."""
    order = itertools.cycle(calls)

    def reply(request: ProviderRequest) -> Reply:
        if request.messages[-1].role == "user":
            return Calls((next(order),))
        return Text("done")

    return reply


CALLS = (
    ScriptedCall("look", {"at": "a rose"}),
    ScriptedCall("smell", {"at": "a rose"}),
)


async def tell_story(
    home: Path, url: str, *, turns: int, restarts: Collection[int], changes: Sequence[int]
) -> Told:
    """
    Hold a conversation, restarted before these turns; the tools change before those of ``changes``.

    Every request is made again from the store by the last process, whose tools are others.
    """
    told = Told()
    stops = (*sorted({*restarts, *changes}), turns + 1)
    with FakeProvider(answer_with_calls(CALLS), strict=False) as provider:
        ended: list[Turn] = []
        for first, stop in itertools.pairwise((1, *stops)):
            tools = TOOLS[sum(change <= first for change in changes)]
            async with open_story_engine(home, url, provider, tools) as engine:
                ended += await _say_all(engine, range(first, stop))
                last = stop > turns
                told.differing.extend(await _compare(engine, ended, provider) if last else [])
        told.requests.extend(provider.requests)
    body = told.requests[-1].json or {}
    told.results.extend(m["content"] for m in body["messages"] if m["role"] == "tool")
    return told


async def _say_all(engine: Engine, numbers: Iterable[int]) -> list[Turn]:
    return [await _say(engine, f"turn {number}") for number in numbers]


async def _say(engine: Engine, text: str) -> Turn:
    done = await engine.wait_for_input(await engine.submit(text, target=TALK))
    assert done.turn is not None
    assert done.text == "done", done
    return done.turn


async def _compare(engine: Engine, turns: Sequence[Turn], provider: FakeProvider) -> list[int]:
    again = [
        (await engine.find_recorded_request(turn.id, step)).body
        for turn in turns
        for step in range(1, turn.steps + 1)
    ]
    pairs = zip(again, provider.requests, strict=True)
    return [number for number, (body, request) in enumerate(pairs) if body != request.body]
