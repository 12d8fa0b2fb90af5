"""Goals of two gateways: rounds begin while people write, and while they pause the goal."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest

from clew.core.entry import Role
from clew.testing import Text
from tests.features.goal_world import call_goal, open_goals, round_of
from tests.features.job_world import CHAT

if TYPE_CHECKING:
    from pathlib import Path

    from clew.core.ids import ConversationId
    from clew.testing import ProviderRequest, Reply
    from tests.features.goal_world import GoalWorld

ROUNDS, MESSAGES, PAUSES = 7, 4, 4


def go_on(request: ProviderRequest) -> Reply:
    """Answer each round and each message, and end the goal in its last round."""
    n = round_of(request)
    if n == ROUNDS and not request.messages[-1].results:
        return call_goal()
    return Text(f"answer {n}")


async def advance(*worlds: GoalWorld) -> None:
    await asyncio.gather(*(one.pursuit.advance_due() for one in worlds))


async def check_rounds(world: GoalWorld) -> None:
    """Each round has one input and one turn of its own, in their order."""
    rounds = await world.rounds()
    assert [one.n for one in rounds] == [*range(1, len(rounds) + 1)]
    assert {one.state.value for one in rounds} == {"done"}
    assert len({one.turn for one in rounds}) == len({one.input for one in rounds}) == len(rounds)
    said = await find_said(world, rounds[0].conversation, r"^Round \d+ of ")
    assert [int(text.split()[1]) for text in said] == [one.n for one in rounds]


async def find_said(world: GoalWorld, home: ConversationId, pattern: str) -> list[str]:
    """What was said to the agent and fits; a message may begin its turn together with a round."""
    log = await world.log(home)
    texts = "\n".join(entry.text for entry in log if entry.role is Role.USER)
    return re.findall(pattern, texts, re.MULTILINE)


@pytest.mark.both_databases
async def test_messages_that_arrive_while_rounds_begin_are_answered_once_between_them(
    tmp_path: Path, store_url: str
) -> None:
    async with (
        open_goals(tmp_path, store_url, go_on) as one,
        open_goals(tmp_path, store_url, go_on, clock=one.clock) as two,
    ):
        home = await one.say("hello")
        await one.command("/goal water it all")
        for n in range(MESSAGES):
            engine = (one, two)[n % 2].engine
            accepted, _ = await asyncio.gather(
                engine.submit(f"and {n}?", target=CHAT), advance(one, two)
            )
            assert "answer" in (await engine.wait_for_input(accepted)).text
        await one.settle("done")
        await check_rounds(one)
        assert len(await one.states()) == ROUNDS
        assert await find_said(one, home, r"and \d\?") == [f"and {n}?" for n in range(MESSAGES)]


@pytest.mark.both_databases
async def test_a_goal_that_is_paused_while_a_round_begins_begins_no_other(
    tmp_path: Path, store_url: str
) -> None:
    async with (
        open_goals(tmp_path, store_url, lambda _: Text("more"), rounds=500) as one,
        open_goals(tmp_path, store_url, lambda _: Text("more"), clock=one.clock) as two,
    ):
        await one.command("/goal water it all")
        for n in range(PAUSES):
            pausing, other = (one, two) if n % 2 else (two, one)
            await asyncio.gather(
                advance(other), pausing.command("/goal pause"), advance(pausing, other)
            )
            assert (await one.settle("paused")).failures == 0
            before = await one.rounds()
            await advance(one, two)
            await one.idle()
            assert await one.rounds() == before
            await other.command("/goal resume")
        await one.command("/goal stop")
        await one.settle("stopped")
        await check_rounds(one)
        assert [kind for kind, _ in await one.delivered() if kind == "notice"] == []
