"""Retries of tools and answers are counted with the turn: a crash does not give new ones."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from pydantic_ai import Agent, ModelRetry
from structlog.testing import capture_logs

from clew.agent.failover import RetryPolicy
from clew.agent.loop import AgentLoop
from clew.agent.models import close_models_on_exit
from clew.core.events import InputCompleted
from clew.core.route import local_route
from clew.engine.engine import Engine
from clew.runtime import build_services
from clew.store.opening import open_store
from clew.store.transactions import turn_queries
from clew.testing import (
    Calls,
    EmptyText,
    FakeProvider,
    Hang,
    MalformedArguments,
    ScriptedCall,
    Text,
)
from tests.integration.api_server import settings_for, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clew.core.inbox import AcceptResult
    from clew.store.contract import Store
    from clew.testing import ProviderRequest, Reply

RETRIES = 3
WRONG = {
    "arguments": MalformedArguments("look"),
    "a tool's own doubts": Calls((ScriptedCall("look", {"at": "nothing"}),)),
    "no answer": EmptyText(),
}


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    with capture_logs():
        yield


def look(at: str) -> str:
    """A tool."""
    if at == "nothing":
        raise ModelRetry("there is nothing to be seen")
    return f"seen: {at}"


def make_engine(store: Store, home: Path, provider: FakeProvider) -> Engine:
    """State of a process that starts now."""
    means = build_services(settings_for(home, provider=provider), store)
    means.models.retry_policy = RetryPolicy(attempts=1)
    agent = Agent(tools=[look], retries=RETRIES)
    return Engine(replace(means, loop=AgentLoop(agent, max_steps=50)), role="test", version="0")


async def ended(engine: Engine, accepted: AcceptResult) -> InputCompleted:
    events = [event async for event in engine.stream_input(accepted)]
    assert isinstance(events[-1], InputCompleted)
    return events[-1]


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
async def test_dep_11_a_process_that_continues_a_turn_continues_counting(
    store_url: str, tmp_path: Path, wrong: Reply
) -> None:
    """Each process but the last is gone while the provider is asked for the second time."""
    got: list[ProviderRequest] = []

    def script(request: ProviderRequest) -> Reply:
        got.append(request)
        return Hang() if len(got) in (2, 4) else wrong

    with FakeProvider(script) as provider:
        async with close_models_on_exit(), await open_store(store_url, home=tmp_path) as store:
            engine = make_engine(store, tmp_path, provider)
            async with engine:
                accepted = await engine.submit("look", target=local_route("talk"))
                await until(lambda: asyncio.sleep(0, len(got) == 2))
            async with make_engine(store, tmp_path, provider):
                await until(lambda: asyncio.sleep(0, len(got) == 4))
            turn = await store.read(turn_queries.find_unfinished_turn, accepted.conversation_id)
            assert turn is not None
            assert list(turn.retries.values()) == [2]
            engine = make_engine(store, tmp_path, provider)
            async with engine:
                end = await ended(engine, accepted)
    assert end.turn is not None
    assert end.turn.error_code in ("gave_up", "empty_reply")
    # Two of them were lost, and asked again.
    assert len(got) == RETRIES + 1 + 2


async def test_a_correct_call_resets_the_count_of_wrong_ones(tmp_path: Path) -> None:
    """Counted is how often in a row; the next turn begins from nothing."""
    right = Calls((ScriptedCall("look", {"at": "x"}),))
    wrong = [WRONG["arguments"]] * RETRIES
    replies = iter([*wrong, right, *wrong, Text("one"), *wrong, Text("two")])
    async with AsyncExitStack() as stack:
        provider = stack.enter_context(FakeProvider(lambda _: next(replies)))
        await stack.enter_async_context(close_models_on_exit())
        store = await open_store("sqlite:///clew.db", home=tmp_path)
        await stack.enter_async_context(store)
        engine = await stack.enter_async_context(make_engine(store, tmp_path, provider))
        for answer in ("one", "two"):
            said = await engine.submit("look", target=local_route("talk"))
            assert (await ended(engine, said)).text == answer
