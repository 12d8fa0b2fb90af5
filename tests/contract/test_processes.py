"""Races between real processes, and owners that are stopped or killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from clew.core.ids import OwnerId
from clew.core.session import Head
from clew.errors import LeaseHeld
from clew.store.opening import open_store
from clew.store.transactions import inbox, leases, sessions
from tests.contract import acting, invariants, tasks
from tests.contract.racing import race, racer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from clew.store.contract import Store, Tx

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

C0 = tasks.conversation(0)
ME = OwnerId("own_me")
SHORT = timedelta(milliseconds=300)


@pytest.fixture
async def store(new_store_url: str, tmp_path: Path) -> AsyncIterator[Store]:
    """The store in this process; every invariant must hold when the race is over."""
    async with await open_store(new_store_url, home=tmp_path) as opened:
        await opened.register_owner(ME)
        yield opened
        assert await opened.read(invariants.check) == []


async def test_of_six_processes_exactly_one_gets_each_lease(
    store: Store, new_store_url: str, tmp_path: Path
) -> None:
    """3.4; ``make soak leases`` runs it with 200 conversations, ten times."""
    await store.write(tasks.prepare, 40)
    winners = race(new_store_url, tmp_path, 6, tasks.claim, 40)
    assert Counter(number for won in winners for number in won) == dict.fromkeys(range(40), 1)


async def test_numbers_have_no_gaps_where_four_processes_take_over_from_each_other(
    store: Store, new_store_url: str, tmp_path: Path
) -> None:
    """3.2"""
    await store.write(tasks.prepare, 1)
    granted = race(new_store_url, tmp_path, 4, tasks.take_over_and_say, 25)
    assert await store.read(acting.expected, C0) == Head(
        session=(await store.read(sessions.get_head, C0)).id, last_seq=sum(granted)
    )


async def test_an_event_that_six_processes_accept_at_once_is_stored_once(
    store: Store, new_store_url: str, tmp_path: Path
) -> None:
    """3.7"""
    answers = race(new_store_url, tmp_path, 6, tasks.accept, 10)
    for event in zip(*answers, strict=True):
        assert [one.duplicate for one in event].count(False) == 1
        assert len({(one.inbox_id, one.conversation_id) for one in event}) == 1
    (conversation,) = {one.conversation_id for one in answers[0]}
    assert len(await store.read(inbox.list_open_items, conversation)) == 10


async def test_of_six_rotations_at_once_one_moves_the_head(
    store: Store, new_store_url: str, tmp_path: Path
) -> None:
    """3.3: even if all of them hold the lease."""
    await store.write(tasks.prepare, 1)
    lease = (await store.write(acting.begin, ME, of=C0)).lease
    expected = await store.read(acting.expected, C0)
    found = race(new_store_url, tmp_path, 6, tasks.rotate, lease, expected)
    (winner,) = [session for session in found if session != "conflict"]
    assert (await store.read(sessions.get_head, C0)).id == winner
    assert len(await store.read(sessions.list_sessions, C0)) == 2


async def test_the_lease_of_a_killed_process_is_free_at_once(
    store: Store, new_store_url: str, tmp_path: Path
) -> None:
    """3.4: long before it would have run out."""
    await store.write(tasks.prepare, 1)
    with racer(new_store_url, tmp_path, "own_other") as other:
        held = other.do(tasks.take, timedelta(hours=1))
        with pytest.raises(LeaseHeld):
            await store.write(leases.acquire_lease, C0, owner=ME, duration=timedelta(hours=1))
        other.process.kill()
        other.process.join()
        taken = await _acquire(store, timedelta(hours=1))
    assert taken.lost_owner == "own_other"
    assert taken.lease.fence == held.fence + 1


async def _acquire(store: Store, duration: timedelta) -> leases.AcquiredLease:
    while True:
        try:
            return await store.write(leases.acquire_lease, C0, owner=ME, duration=duration)
        except LeaseHeld:
            continue


async def test_an_owner_that_was_stopped_past_its_lease_fails_at_its_first_write(
    store: Store, new_store_url: str, tmp_path: Path
) -> None:
    """3.4"""
    await store.write(tasks.prepare, 1)
    with racer(new_store_url, tmp_path, "own_other") as other:
        held = other.do(tasks.take, SHORT)
        assert other.process.pid is not None
        os.kill(other.process.pid, signal.SIGSTOP)
        taken = await _acquire(store, SHORT)
        os.kill(other.process.pid, signal.SIGCONT)
        assert other.do(tasks.say, held, "ent_late") == "lease lost"
    assert taken.lost_owner == "own_other"
    assert (await store.write(acting.append, taken.lease, "ent_1"))[0].seq == 2


async def test_an_owner_that_is_late_but_was_not_overtaken_continues(
    store: Store, new_store_url: str, tmp_path: Path
) -> None:
    await store.write(tasks.prepare, 1)
    with racer(new_store_url, tmp_path, "own_other") as other:
        held = other.do(tasks.take, timedelta(0))
        assert other.do(tasks.say, held, "ent_late") == 2


async def test_readers_are_not_blocked_by_a_lease_or_a_writer(
    store: Store, new_store_url: str, tmp_path: Path
) -> None:
    """3.11: a read ends while another connection is in the middle of a write."""
    await store.write(tasks.prepare, 1)
    async with await open_store(new_store_url, home=tmp_path) as other:
        lease = (await other.write(acting.begin, ME, of=C0)).lease

        def slow(t: Tx) -> int:
            acting.append(t, lease, "ent_1")
            asked = asyncio.run_coroutine_threadsafe(store.read(acting.expected, C0), loop)
            return asked.result(timeout=120).last_seq

        loop = asyncio.get_running_loop()
        assert await other.write(slow) == 1


@pytest.mark.parametrize("_round", range(2))
def test_of_five_processes_that_start_at_once_one_makes_the_schema(
    new_store_url: str, tmp_path: Path, _round: int
) -> None:
    """``make soak starts`` runs it twenty times."""
    assert race(new_store_url, tmp_path, 5, None) == ["opened"] * 5
