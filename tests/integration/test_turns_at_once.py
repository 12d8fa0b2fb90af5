"""Only so many turns of a process are at work at once; the others are not even begun."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from clew.commands.runner import CommandRunner
from clew.core import scope
from clew.core.inbox import InboxOutcome
from clew.core.route import local_route
from clew.core.turn import TurnOutcome
from tests.line.world import open_world

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from clew.core.inbox import AcceptResult
    from clew.store.contract import Tx
    from tests.line.world import World


@pytest.fixture
async def world(store_url: str, tmp_path: Path) -> AsyncGenerator[World]:
    async with open_world(store_url, tmp_path, turns_at_once=1) as found:
        yield found
        assert await found.check() == []


async def _at_work(world: World) -> tuple[AcceptResult, asyncio.Event]:
    """A turn that has the slot, and what lets it go on."""
    reached, goes_on = asyncio.Event(), asyncio.Event()

    async def stay() -> None:
        reached.set()
        await goes_on.wait()

    world.points.arm("model asked for an answer", stay)
    accepted = await world.say("a:", to="first")
    await reached.wait()
    return accepted, goes_on


async def _outcome(world: World, accepted: AcceptResult) -> TurnOutcome | None:
    turn = (await world.end(accepted)).turn
    return None if turn is None else turn.outcome


def _leased(t: Tx) -> int:
    row = t.fetch_one("SELECT count(owner) FROM lease")
    assert row is not None
    return row[0]


@pytest.mark.both_databases
async def test_a_turn_without_a_slot_is_not_started_and_the_oldest_is_next(world: World) -> None:
    """A turn that was not started does not count as interrupted when the process dies."""
    first, goes_on = await _at_work(world)
    others = [await world.say(f"{name}:", to=name) for name in ("b", "c", "d")]
    await asyncio.sleep(0.05)
    lines = [await world.engine.list_queue(one.conversation_id) for one in others]
    assert [len(line) for line in lines] == [1, 1, 1]
    assert await world.store.inner.read(_leased) == 1
    goes_on.set()
    ends = [await world.end(one) for one in (first, *others)]
    assert [end.text for end in ends] == [f"answer to {name}" for name in "abcd"]
    begun = [end.turn.started_at for end in ends if end.turn is not None]
    assert begun == sorted(begun)


async def test_commands_wait_for_no_slot(world: World) -> None:
    first, goes_on = await _at_work(world)
    waiting = await world.say("b:", to="second")
    route = local_route("second")
    told = await CommandRunner(world.engine).run_command("/queue", target=route, viewer=scope.LOCAL)
    assert "b:" in told.text
    closed = await world.engine.queue_close(waiting.conversation_id, reason="user_exit")
    assert await world.engine.cancel_input(waiting.inbox_id)
    assert (await world.end(closed)).outcome is InboxOutcome.EXECUTED
    await world.engine.request_stop(first.conversation_id)
    assert await _outcome(world, first) is TurnOutcome.CANCELLED
    goes_on.set()


async def test_a_turn_that_waits_for_a_person_holds_no_slot(world: World) -> None:
    asks = await world.say("p: pay", to="asks")
    question = await world.question(asks.conversation_id)
    _, goes_on = await _at_work(world)
    await world.engine.answer_approval(question.id, yes=True)
    await asyncio.sleep(0.05)
    assert await world.engine.get_input_result(asks.inbox_id) is None
    # Its place in the order is of its first turn; a stop needs none.
    await world.engine.request_stop(asks.conversation_id)
    assert await _outcome(world, asks) is TurnOutcome.CANCELLED
    goes_on.set()
