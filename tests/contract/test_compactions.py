"""Compactions that come to nothing: by whom, how often, and what is left of them."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from clew.core.compaction import MAX_CRASHES, CompactionState
from clew.core.double_text import DoubleText
from clew.core.route import local_route
from clew.core.turn import TurnOutcome
from clew.engine.compaction import CompactionPolicy
from clew.store.transactions import compactions
from tests.contract.lifecycle.doubles import Provider, Summariser, answered
from tests.contract.lifecycle.filling import fill
from tests.contract.lifecycle.house import open_house

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from clew.agent.compactor import RunUsage
    from clew.agent.models import Model
    from clew.core.ids import SessionId
    from tests.contract.lifecycle.house import House

TALK = local_route("talk")
WINDOW = 200_000


class Held(Summariser):
    """A summariser that waits to be let go, and looks at what is remembered meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.gate = asyncio.Event(), asyncio.Event()
        self.seen: list[CompactionState] = []
        self.house: House | None = None

    async def summarise_messages(
        self,
        messages: Sequence[ModelMessage],
        model: Model,
        *,
        window: int,
        focus: str | None,
        usage: RunUsage,
    ) -> str:
        assert self.house is not None
        self.seen.append(await _remembered(self.house))
        self.asked.set()
        await self.gate.wait()
        return await super().summarise_messages(
            messages, model, window=window, focus=focus, usage=usage
        )


async def _remembered(house: House, session: SessionId | None = None) -> CompactionState:
    head = session or (await house.head(TALK.key)).id
    return await house.store.read(compactions.load_compaction_state, head)


async def test_a_summary_is_counted_before_it_is_asked_for_and_forgotten_once_it_is_there(
    store_url: str, tmp_path: Path
) -> None:
    held = Held()
    async with open_house(store_url, tmp_path, window=WINDOW, summariser=held) as house:
        held.house = house
        held.gate.set()
        await house.store.write(fill, await house.open(TALK), 30)
        await house.say("go on", to=TALK)
        assert [(state.failures, state.cooldown_until) for state in held.seen] == [(1, 0)]
        assert (await _remembered(house)).failures == 0


async def test_a_compaction_in_which_the_process_died_again_and_again_is_put_off(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path, window=WINDOW) as house:
        conversation = await house.open(TALK)
        await house.store.write(fill, conversation, 20)
        session = (await house.head(TALK.key)).id
        died = CompactionState(failures=MAX_CRASHES)
        await house.store.write(compactions.save_compaction_state, session, died)
        ended = await house.end(await house.engine.sessions.queue_compaction(conversation))
        assert f"died {MAX_CRASHES} times" in json.loads(ended.note or "{}")["note"]
        assert house.summariser.calls == 0
        # A new request by a person runs nevertheless.
        await house.end(await house.engine.sessions.queue_compaction(conversation))
        assert house.summariser.calls == 1
        assert (await house.head(TALK.key)).id != session


async def test_a_stop_in_a_compaction_leaves_no_rotation_and_is_no_failure_of_it(
    store_url: str, tmp_path: Path
) -> None:
    held = Held()
    async with open_house(store_url, tmp_path, window=WINDOW, summariser=held) as house:
        held.house = house
        await house.store.write(fill, await house.open(TALK), 30)
        before = (await house.head(TALK.key)).id
        first = await house.engine.submit("go on", target=TALK)
        await held.asked.wait()
        house.means.compaction.planner.policy = CompactionPolicy(window=None)
        second = await house.engine.submit(
            house.engine.new_input("rather this", double_text=DoubleText.INTERRUPT), target=TALK
        )
        stopped = await house.end(first)
        assert stopped.turn is not None
        assert stopped.turn.outcome is TurnOutcome.CANCELLED
        assert (await house.end(second)).text == "You said: rather this"
        assert (await house.head(TALK.key)).id == before
        assert await _remembered(house) == CompactionState()
        assert held.calls == 0


async def test_a_context_is_made_to_fit_the_model_that_is_asked_and_not_the_summariser(
    store_url: str, tmp_path: Path
) -> None:
    """After a switch to a smaller model, one compaction is enough."""
    small = Provider(lambda _: answered("so be it"), window=40_000)
    async with open_house(store_url, tmp_path, model=small.model) as house:
        await house.store.write(fill, await house.open(TALK), 20)
        assert (await house.say("and now?", to=TALK)).text == "so be it"
        assert house.summariser.calls == 1
        # Twenty messages of 6,000 tokens are long for a window of 40,000, and no longer are.
        assert len(small.sent[-1]) == 3
