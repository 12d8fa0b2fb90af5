"""The line of a conversation: bursts, new conversations, rewinds, and words of other processes."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from clew.core.double_text import MAX_COLLECTED, MAX_WINDOW, QUIET_PERIOD, DoubleText
from clew.core.inbox import InboxKind, InboxOutcome
from clew.core.route import local_route
from clew.core.turn import StopRequest, TurnOutcome
from clew.errors import UsageError
from clew.store.opening import open_store
from clew.store.transactions import context, rows, turn_queries
from tests.line import double_text, other, strict
from tests.line.clock import StillClock
from tests.line.double_text import MOMENTS, RULES
from tests.line.points import Forgetful
from tests.line.world import open_world

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from clew.core.ids import ConversationId
    from clew.core.inbox import AcceptResult, InboxItem
    from clew.store.contract import Tx
    from tests.line.world import World

TALK = local_route("talk")


@pytest.fixture
async def world(store_url: str, tmp_path: Path) -> AsyncGenerator[World]:
    async with open_world(store_url, tmp_path) as found:
        yield found
        assert await found.check() == []


# Bursts


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
async def still(store_url: str, tmp_path: Path, clock: StillClock) -> AsyncGenerator[World]:
    async with open_world(store_url, tmp_path, clock=clock) as found:
        yield found
        assert await found.check() == []


async def _burst(world: World, count: int, apart: timedelta) -> list[AcceptResult]:
    said: list[AcceptResult] = []
    for number in range(count):
        world.clock.advance(seconds=apart.total_seconds() if number else 0)
        said.append(await world.say(f"m{number}:", DoubleText.COLLECT))
    return said


async def _outcomes(world: World, said: Sequence[AcceptResult]) -> list[InboxOutcome | None]:
    return [(await world.item(accepted)).outcome for accepted in said]


def _merged(count: int) -> list[InboxOutcome]:
    return [InboxOutcome.TURN, *[InboxOutcome.MERGED] * (count - 1)]


async def test_a_burst_is_one_turn_once_it_is_quiet(still: World) -> None:
    said = await _burst(still, 3, QUIET_PERIOD / 2)
    last = (await still.item(said[-1])).received_at
    assert {(await still.item(accepted)).due_at for accepted in said} == {last + QUIET_PERIOD}
    assert await _outcomes(still, said) == [None] * 3
    await _let_pass(still, QUIET_PERIOD, said)
    assert (await still.end(said[0])).text == "answer to m0 m1 m2"
    assert await _outcomes(still, said) == _merged(3)


async def test_a_burst_without_end_is_begun_on_after_three_seconds(still: World) -> None:
    said = await _burst(still, 7, MAX_WINDOW / 7)
    first = (await still.item(said[0])).received_at
    assert (await still.item(said[-1])).due_at == first + MAX_WINDOW
    await _let_pass(still, first + MAX_WINDOW - still.clock.now(), said)
    await still.end(said[0])
    assert await _outcomes(still, said) == _merged(7)


async def test_the_tenth_message_of_a_burst_begins_it(still: World) -> None:
    said = await _burst(still, MAX_COLLECTED, timedelta(0))
    await still.end(said[0])
    assert await _outcomes(still, said) == _merged(MAX_COLLECTED)


async def test_a_burst_is_due_at_its_time_after_a_restart_too(
    store_url: str, tmp_path: Path, clock: StillClock
) -> None:
    async with open_world(store_url, tmp_path, clock=clock) as world:
        said = await _burst(world, 2, QUIET_PERIOD / 2)
        due = (await world.item(said[0])).due_at
    async with open_world(store_url, tmp_path, clock=clock) as world:
        world.engine.wake_conversation(said[0].conversation_id)
        await asyncio.sleep(0.05)
        assert await _outcomes(world, said) == [None, None]
        await _let_pass(world, due - clock.now(), said)
        assert (await world.end(said[1])).text == "answer to m0 m1"
        assert await _outcomes(world, said) == _merged(2)


async def _let_pass(world: World, time: timedelta, said: Sequence[AcceptResult]) -> None:
    world.clock.advance(seconds=time.total_seconds())
    world.engine.wake_conversation(said[0].conversation_id)


# Writes whose answer is lost


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.value)
async def test_a_store_that_makes_every_write_twice_changes_nothing(
    tmp_path: Path, rule: DoubleText
) -> None:
    async with open_world(f"sqlite:///{tmp_path}/a.db", tmp_path, kind=Forgetful) as world:
        found = {moment.name: await double_text.play(world, rule, moment) for moment in MOMENTS}
        assert found == {moment.name: double_text.expected(rule, moment) for moment in MOMENTS}
        assert await world.check() == []


# A new conversation


@pytest.mark.both_databases
async def test_messages_that_race_with_a_new_conversation_land_on_one_side(world: World) -> None:
    left: list[ConversationId] = []
    said: list[AcceptResult] = []

    async def talk(number: int) -> None:
        rule = RULES[number % len(RULES)]
        said.append(await world.say(f"m{number}: look", rule))

    for burst in range(4):
        left.append((await world.say(f"first{burst}: look read")).conversation_id)
        talking = [talk(100 * burst + number) for number in range(12)]
        await asyncio.gather(*talking[:6], world.engine.start_new_conversation(TALK), *talking[6:])
    for accepted in said:
        await world.end(accepted)
    for conversation in left:
        await world.idle(conversation)
        items = await world.store.inner.read(_items, conversation)
        assert items[-1].kind is InboxKind.COMMAND
        assert all(item.outcome is not None for item in items)
        view = await world.engine.get_view(conversation)
        assert view.sessions[-1].end_reason == "reset"
        assert strict.complaints(strict.log_bits(await world.log(conversation))) == []
    assert await world.engine.resolve_name(TALK.key) not in left


def _items(t: Tx, conversation: ConversationId) -> list[InboxItem]:
    return rows.INBOX.fetch_all(t, "WHERE conversation_id = $1 ORDER BY n", conversation)


async def test_a_new_conversation_ends_what_runs_and_cancels_what_waits(world: World) -> None:
    waiting: list[AcceptResult] = []

    async def start_afresh() -> None:
        waiting.extend([await world.say("b:"), await world.say("c:", DoubleText.STEER)])
        await world.engine.start_new_conversation(TALK)
        await world.over.wait()

    world.points.arm("look begins", start_afresh)
    first = await world.say("a: look")
    ended = await world.end(first)
    assert ended.turn is not None
    assert (ended.turn.outcome, ended.turn.stop) == (TurnOutcome.CANCELLED, StopRequest.INTERRUPT)
    assert [(await world.end(item)).outcome for item in waiting] == [InboxOutcome.CANCELLED] * 2
    assert (await world.say("d:")).conversation_id != first.conversation_id
    await world.idle(first.conversation_id)
    assert (await world.engine.get_view(first.conversation_id)).sessions[-1].end_reason == "reset"


# Rewinds


async def test_a_rewind_to_any_point_gives_the_context_of_its_boundary(world: World) -> None:
    for text in ("a: look read; send", "b: look; read look", "c:"):
        conversation = (await world.end(await world.say(text))).conversation
    log = await world.log(conversation)
    kept: list[int | None] = []
    for to in (*range(len(log)), len(log) - 2):
        await world.end(await world.engine.queue_rewind(conversation, to=to))
        found = await world.store.inner.read(context.read_head_context, conversation)
        boundary = max(
            seq for seq in range(to + 1) if not strict.complaints(strict.log_bits(log[:seq]))
        )
        kept = [message.seq for message in found.messages]
        assert kept == list(range(1, boundary + 1))
    # Up to the last rewind: messages that it removed do not return.
    await world.end(await world.engine.queue_rewind(conversation, to=len(log)))
    found = await world.store.inner.read(context.read_head_context, conversation)
    assert [message.seq for message in found.messages] == kept
    assert len(await world.log(conversation)) == len(log)
    with pytest.raises(UsageError, match=f"there is no entry {len(log) + 1}"):
        await world.engine.queue_rewind(conversation, to=len(log) + 1)
    assert (await world.end(await world.say("d:"))).text == "answer to d"


async def test_a_rewind_waits_for_the_turn_that_runs(world: World) -> None:
    filed: list[AcceptResult] = []

    async def rewind() -> None:
        filed.append(await world.engine.queue_rewind(first.conversation_id, to=0))
        filed.append(await world.say("b:", DoubleText.STEER))

    world.points.arm("look begins", rewind)
    first = await world.say("a: look; look")
    assert (await world.end(first)).text == "answer to a"
    assert [(await world.end(item)).outcome for item in filed] == [
        InboxOutcome.EXECUTED,
        InboxOutcome.TURN,
    ]
    assert strict.shape_of(world.model.sent[-1]) == ["b"]


# Words of other processes, and of processes that are gone


async def test_a_stop_of_another_process_ends_the_turn(
    world: World, store_url: str, tmp_path: Path
) -> None:
    begun = asyncio.Event()

    async def hang() -> None:
        begun.set()
        await world.over.wait()

    world.points.arm("read begins", hang)
    accepted = await world.say("a: read")
    await begun.wait()
    turn = await world.engine.get_unfinished_turn(accepted.conversation_id)
    assert turn is not None
    await other.say("stop", turn.id, url=store_url, home=tmp_path)
    ended = await world.end(accepted)
    assert ended.turn is not None
    assert ended.turn.outcome is TurnOutcome.CANCELLED


@pytest.mark.parametrize("word", ["approve", "deny"])
async def test_an_answer_of_another_process_lets_the_turn_continue(
    world: World, store_url: str, tmp_path: Path, word: str
) -> None:
    accepted = await world.say("a: pay")
    question = await world.question(accepted.conversation_id)
    await other.say(word, question.id, url=store_url, home=tmp_path)
    assert (await world.end(accepted)).text == "answer to a"
    assert sum(world.tools.ran.values()) == int(word == "approve")


async def test_a_turn_that_was_stopped_stays_so_after_a_restart(
    store_url: str, tmp_path: Path
) -> None:
    async with open_world(store_url, tmp_path) as world:
        begun = asyncio.Event()

        async def hang() -> None:
            begun.set()
            await world.over.wait()

        world.points.arm("look begins", hang)
        accepted = await world.say("a: look; send")
        await begun.wait()
        turn = await world.engine.get_unfinished_turn(accepted.conversation_id)
    assert turn is not None
    async with await open_store(store_url, home=tmp_path) as store:
        assert await store.write(turn_queries.request_stop, turn.id, StopRequest.STOP)
    async with open_world(store_url, tmp_path) as world:
        ended = await world.end(accepted)
        assert ended.turn is not None
        assert ended.turn.outcome is TurnOutcome.CANCELLED
        assert not world.tools.ran
        assert not world.model.sent
        shape = await world.shape(accepted.conversation_id)
        assert shape[-1] == "[stopped by the user]"
        assert await world.check() == []
