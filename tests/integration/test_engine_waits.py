"""A conversation that waits costs nothing: no write is made until there is something to do."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from clew.agent.alternation import enforce_alternation
from clew.agent.failover import ModelChain, RetryPolicy
from clew.core.double_text import DoubleText
from clew.core.events import InputCompleted
from clew.core.route import local_route
from clew.engine.engine import Engine
from clew.store.opening import open_store
from clew.store.transactions import turns
from clew.testing.provider import FakeProvider
from tests.killing.child import Job, make_means
from tests.killing.killer import Killer, WatchedStore, job_name
from tests.killing.plans import Say, reply_to
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from clew.core.inbox import AcceptResult

BEGUN = f"{job_name(turns.begin_work)} before"


class Watched:
    """An engine whose writes are counted."""

    def __init__(self, engine: Engine, reached: Counter[str]) -> None:
        self.engine, self.reached = engine, reached


@pytest.fixture
async def watched(store_url: str, tmp_path: Path) -> AsyncGenerator[Watched]:
    reached = Counter[str]()
    with FakeProvider(reply_to) as provider:
        job = Job(folder=tmp_path, store_url=store_url, provider=provider.openai_url)
        inner = await open_store(store_url, home=tmp_path)
        async with WatchedStore(inner, lambda place: reached.update([place])) as store:
            model = OpenAIChatModel(
                "fake-model", provider=OpenAIProvider(base_url=job.provider, api_key="none")
            )
            enforce_alternation(model)
            means = replace(
                make_means(job, store, Killer(None, job.fronts, tmp_path)),
                models=ModelChain([model], RetryPolicy(), time.monotonic),
            )
            async with model.client, Engine(means, role="test", version="0") as engine:
                yield Watched(engine, reached)


async def test_a_turn_that_waits_for_a_person_is_not_begun_again_and_again(
    watched: Watched,
) -> None:
    engine = watched.engine
    say = Say(key="c1m1", plan="pay")
    accepted = await engine.submit(say.text, target=local_route("c1"))
    await engine.submit(Say(key="c1m2").text, target=local_route("c1"))
    await wait_until(lambda: engine.list_approvals(accepted.conversation_id), "a question")
    watched.reached.clear()
    await asyncio.sleep(1.2)
    assert watched.reached[BEGUN] <= 1
    (approval,) = await engine.list_approvals(accepted.conversation_id)
    await engine.answer_approval(approval.id, yes=True)
    assert (await _end(engine, accepted)) == "answer to c1m1"


async def test_a_burst_that_is_being_collected_is_begun_once(watched: Watched) -> None:
    engine = watched.engine
    first, second = [
        await engine.submit(
            engine.new_input(Say(key=key).text, double_text=DoubleText.COLLECT),
            target=local_route("c1"),
        )
        for key in ("c1m1", "c1m2")
    ]
    for accepted in (first, second):
        assert (await _end(engine, accepted)) == "answer to c1m1 c1m2"
    assert watched.reached[BEGUN] <= 2


async def _end(engine: Engine, accepted: AcceptResult) -> str:
    events = [event async for event in engine.stream_input(accepted)]
    assert isinstance(events[-1], InputCompleted)
    return events[-1].text
