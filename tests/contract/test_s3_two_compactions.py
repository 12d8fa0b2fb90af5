"""S3: two compactions of one session."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError

from clew.commands.runner import CommandRunner
from clew.core.compaction import MAX_PER_TURN, MAX_STALLS
from clew.core.ids import SessionId
from clew.core.route import local_route
from clew.core.scope import LOCAL
from clew.core.turn import TurnOutcome
from clew.store.transactions import leases, locks, sessions
from tests.contract.lifecycle.doubles import Provider, Summariser
from tests.contract.lifecycle.filling import EARLIER, fill
from tests.contract.lifecycle.house import House, open_house
from tests.forking import FORKS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage, ModelResponse

    from clew.core.ids import ConversationId
    from clew.core.session import Session

OLD, NEW = "20260101_000000_aaaaaa", "20260101_000001_bbbbbb"
TALK = local_route("talk")
WINDOW = 200_000
#: Told of one actor: whether it moved, where it is now, how often it summarised, and who holds the
#: lock once both are done and still there.
Told = tuple[bool, str, int, str | None]


async def _compact(url: str, home: Path, ready: Callable[[], object]) -> Told:
    """One actor: it holds the session, waits for the others and compacts."""
    async with open_house(url, home, window=WINDOW, summariser=Summariser(seconds=0.25)) as house:
        context = await house.means.context_cache.refresh_context(
            await house.engine.resolve_name(TALK.key)
        )
        held = [kept.message for kept in context.messages]
        assert len(held) == 20
        await asyncio.to_thread(ready)
        done = await house.engine.compact(SessionId(OLD), held)
        if not done.moved:
            assert done.messages is held
        # A lock that is left by a process which is gone would be free.
        await asyncio.to_thread(ready)
        held_by = await house.store.read(locks.get_compression_lock_holder, SessionId(OLD))
        await asyncio.to_thread(ready)
        return done.moved, done.session_id, house.summariser.calls, held_by


def _actor(url: str, home: Path, ready: Callable[[], object], told: Callable[[Any], None]) -> None:
    try:
        told(asyncio.run(_compact(url, home, ready)))
    except BaseException as error:
        told(repr(error))
        raise


async def _prepare(url: str, home: Path) -> None:
    async with open_house(url, home, session_ids=[OLD]) as house:
        await house.store.write(fill, await house.open(TALK), 20)


async def _judge(url: str, home: Path, outcomes: list[Told]) -> None:
    assert all(isinstance(one, tuple) for one in outcomes), outcomes
    assert sorted(moved for moved, _, _, _ in outcomes) == [False, True]
    assert sum(calls for _, _, calls, _ in outcomes) == 1
    assert [held_by for _, _, _, held_by in outcomes] == [None, None]
    async with open_house(url, home) as house:
        conversation = await house.engine.resolve_name(OLD)
        lineage: list[Session] = await house.store.read(sessions.list_sessions, conversation)
        (successor,) = [one.id for one in lineage if one.predecessor == OLD]
        assert lineage[-1].id == successor
        assert (True, successor) in {(moved, session) for moved, session, _, _ in outcomes}


@pytest.mark.slow
async def test_s3_1_of_two_threads_that_compact_one_session_one_moves_it(
    store_url: str, tmp_path: Path
) -> None:
    await _prepare(store_url, tmp_path)
    together = threading.Barrier(2, timeout=50)
    outcomes: list[Told] = []
    threads = [
        threading.Thread(target=_actor, args=(store_url, tmp_path, together.wait, outcomes.append))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    await _judge(store_url, tmp_path, outcomes)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_s3_1_of_two_processes_that_compact_one_session_one_moves_it(
    store_url: str, tmp_path: Path
) -> None:
    await _prepare(store_url, tmp_path)
    together, told = FORKS.Barrier(2, timeout=100), FORKS.SimpleQueue()
    processes = [
        FORKS.Process(
            target=_actor, args=(store_url, tmp_path, together.wait, told.put), daemon=True
        )
        for _ in range(2)
    ]
    for process in processes:
        process.start()
    outcomes = [await asyncio.to_thread(told.get) for _ in processes]
    for process in processes:
        await asyncio.to_thread(process.join)
    await _judge(store_url, tmp_path, outcomes)


async def test_s3_1_an_actor_that_comes_when_it_is_done_moves_nothing(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path, session_ids=[OLD, NEW], window=WINDOW) as house:
        conversation = await house.open(TALK)
        held = await house.store.write(fill, conversation, 20)
        assert (await house.engine.compact(SessionId(OLD), held)).moved
        await house.store.write(fill, conversation, 20)
        late = await house.engine.compact(SessionId(OLD), held)
        assert (late.moved, late.session_id, late.messages is held) == (False, NEW, True)
        assert house.summariser.calls == 1


async def test_s3_2_while_the_lock_is_held_nothing_is_summarised_and_nothing_moves(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path, session_ids=[OLD, NEW], window=WINDOW) as house:
        # Two that are compacted as soon as the lock is free.
        held = await house.store.write(fill, await house.open(TALK), 2, size=240_000)
        session = SessionId(OLD)
        await house.store.write(locks.try_acquire_compression_lock, session, "external_holder")
        done = await house.engine.compact(session, held)
        assert done.messages is held
        assert len(done.messages) == 2
        assert (done.moved, done.session_id) == (False, OLD)
        assert house.summariser.calls == 0
        holder = await house.store.read(locks.get_compression_lock_holder, session)
        assert holder == "external_holder"
        # Neither does a turn of this conversation compact it, nor a person who asks for it.
        assert (await house.say("and now?", to=TALK)).session == OLD
        asked = await CommandRunner(house.engine).run_command("/compact", target=TALK, viewer=LOCAL)
        assert "under way" in asked.text
        assert house.summariser.calls == 0
        await house.store.write(locks.release_compression_lock, session, "external_holder")
        await CommandRunner(house.engine).run_command("/compact", target=TALK, viewer=LOCAL)
        assert (await house.head(TALK.key)).id == NEW
        assert house.summariser.calls == 1


async def test_s3_2_the_lock_belongs_to_the_conversation_whatever_session_id_it_is_given(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path, session_ids=[OLD, NEW], window=WINDOW) as house:
        await house.store.write(fill, await house.open(TALK), 20)
        assert (await house.engine.compact(SessionId(OLD))).session_id == NEW
        take, look = locks.try_acquire_compression_lock, locks.get_compression_lock_holder
        assert await house.store.write(take, SessionId(OLD), "external_holder")
        assert await house.store.read(look, SessionId(NEW)) == "external_holder"
        assert not await house.store.write(take, SessionId(NEW), "another")
        await house.store.write(locks.release_compression_lock, SessionId(NEW), "external_holder")
        assert await house.store.read(look, SessionId(OLD)) is None


async def test_s3_2_the_lock_of_a_dead_process_blocks_nothing(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path, session_ids=[OLD, NEW], window=WINDOW) as house:
        await house.store.write(fill, await house.open(TALK), 20)
        assert await house.store.write(
            locks.try_acquire_compression_lock, SessionId(OLD), f"{EARLIER}:op_1"
        )
        assert (await house.engine.compact(SessionId(OLD))).moved


class BrokenLock:
    """A lock of another version: none of its calls is there."""

    async def try_acquire_compression_lock(self, session: SessionId, holder: str) -> bool:
        raise AttributeError("try_acquire_compression_lock")

    async def get_compression_lock_holder(self, session: SessionId) -> str | None:
        raise AttributeError("get_compression_lock_holder")

    async def release_compression_lock(self, session: SessionId, holder: str) -> None:
        raise AttributeError("release_compression_lock")


async def test_s3_3_a_lock_that_cannot_be_used_hinders_no_compaction(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(
        store_url, tmp_path, session_ids=[OLD, NEW], window=WINDOW, lock=BrokenLock()
    ) as house:
        held = await house.store.write(fill, await house.open(TALK), 20)
        done = await house.engine.compact(SessionId(OLD), held)
        assert house.summariser.calls == 1
        assert (done.moved, done.session_id) == (True, NEW)
        assert len(done.messages) < 20


def _too_long(_: list[ModelMessage]) -> ModelResponse:
    raise ModelHTTPError(400, "provider", body={"message": "context length exceeded"})


async def test_s3_3_without_a_lock_a_turn_that_compaction_cannot_help_ends(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(
        store_url, tmp_path, window=WINDOW, lock=BrokenLock(), provider=Provider(_too_long)
    ) as house:
        await house.store.write(fill, await house.open(TALK), 20)
        ended = await house.say("and now?", to=TALK)
        assert ended.turn is not None
        assert ended.turn.outcome is TurnOutcome.FAILED
        assert "/compact" in ended.text
        assert 1 <= house.summariser.calls <= MAX_PER_TURN
        before = house.summariser.calls
        for _ in range(5):
            await house.say("and now?", to=TALK)
        # Compactions without progress stop by themselves, across turns too.
        assert house.summariser.calls - before <= MAX_STALLS


async def test_a_compaction_beside_a_running_turn_of_the_same_process_leaves_its_lease(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path, window=WINDOW) as house:
        conversation = await house.open(TALK)
        await house.store.write(fill, conversation, 20)
        running = await house.hold(to=TALK)
        done = await house.engine.compact((await house.head(TALK.key)).id)
        assert not done.moved
        assert await _leased(house, conversation)
        house.let_go()
        assert (await house.end(running)).outcome.value == "turn"


async def _leased(house: House, conversation: ConversationId) -> bool:
    return conversation in await house.store.read(
        leases.list_leased_conversations, house.engine.owner_id
    )
