"""Slots: who is at work, and who is next."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from clew.engine.turn_concurrency import TurnLimiter, TurnPermit

if TYPE_CHECKING:
    from collections.abc import Generator


class Line:
    """Turns that ask for slots, in this order."""

    def __init__(self, stack: ExitStack, slots: TurnLimiter) -> None:
        self._stack, self._slots = stack, slots

    def stand(self) -> TurnPermit:
        return self._stack.enter_context(self._slots.open_permit(asyncio.Event()))

    def ask(self, *, suspect: bool = False) -> TurnPermit:
        slot = self.stand()
        slot.request(suspect=suspect)
        return slot


@pytest.fixture
def stack() -> Generator[ExitStack]:
    with ExitStack() as found:
        yield found


def given(*slots: TurnPermit) -> list[bool]:
    for slot in slots:
        assert slot.wake_event.is_set() >= slot.granted.is_set()
    return [slot.granted.is_set() for slot in slots]


async def test_the_first_request_is_served_next(stack: ExitStack) -> None:
    line = Line(stack, TurnLimiter(2))
    a, b, c, d = (line.ask() for _ in range(4))
    assert given(a, b, c, d) == [True, True, False, False]
    b.release()
    assert given(a, c, d) == [True, True, False]
    # A waiter that gave up has no slot to release.
    d.release()
    a.release()
    c.release()
    assert given(line.ask(), line.ask(), line.ask()) == [True, True, False]


async def test_the_first_in_order_is_next_although_it_asks_later(stack: ExitStack) -> None:
    line = Line(stack, TurnLimiter(1))
    early, at_work, late = line.stand(), line.ask(), line.ask()
    early.request(suspect=False)
    at_work.release()
    assert given(early, late) == [True, False]


async def test_one_suspect_is_begun_at_a_time_and_before_others(stack: ExitStack) -> None:
    line = Line(stack, TurnLimiter(2, long=60))
    at_work, other = line.ask(), line.stand()
    first, second = line.ask(suspect=True), line.ask(suspect=True)
    other.request(suspect=False)
    at_work.release()
    # Nobody who is begun now could be what ends the process.
    assert given(first, second, other) == [True, False, False]
    first.release()
    assert given(second, other) == [True, False]
    second.release()
    assert given(other) == [True]


async def test_a_suspect_that_takes_long_holds_up_other_suspects_only(stack: ExitStack) -> None:
    line = Line(stack, TurnLimiter(3, long=0))
    first, second, other = line.ask(suspect=True), line.ask(suspect=True), line.ask()
    assert given(first, second, other) == [True, False, False]
    await asyncio.wait_for(other.wake_event.wait(), 120)
    assert given(first, second, other) == [True, False, True]
    with first.lend_while_waiting():
        await asyncio.sleep(0.001)
        assert given(first, second) == [False, False]
    first.release()
    assert given(second) == [True]


async def test_a_long_wait_lends_the_slot_and_gets_it_back_at_once(stack: ExitStack) -> None:
    """A tool may wait for another turn: were slots kept, both would wait for ever."""
    line = Line(stack, TurnLimiter(1, long=0))
    waits, other, third = line.ask(), line.ask(), line.ask()
    with waits.lend_while_waiting(), waits.lend_while_waiting():
        await asyncio.wait_for(other.wake_event.wait(), 120)
        assert given(waits, other, third) == [False, True, False]
    # Its response is stored now; no turn begins until another one has ended.
    assert given(waits, other, third) == [True, True, False]
    other.release()
    assert given(third) == [False]
    waits.release()
    assert given(third) == [True]


async def test_a_short_wait_keeps_the_slot_and_a_turn_without_one_needs_none(
    stack: ExitStack,
) -> None:
    line = Line(stack, TurnLimiter(1, long=60))
    waits, other, free = line.ask(), line.ask(), line.stand()
    with waits.lend_while_waiting(), free.lend_while_waiting():
        await asyncio.sleep(0.001)
        assert given(waits, other, free) == [True, False, False]
    assert given(waits, other, free) == [True, False, False]


async def test_a_call_that_works_keeps_the_slot_and_lends_it_when_it_waits_after_that(
    stack: ExitStack,
) -> None:
    line = Line(stack, TurnLimiter(1, long=0))
    works, other = line.ask(), line.ask()
    with works.lend_while_waiting():
        with works.keep_while_working(), works.keep_while_working():
            await asyncio.sleep(0.001)
            assert given(works, other) == [True, False]
        await asyncio.wait_for(other.wake_event.wait(), 120)
        assert given(works, other) == [False, True]
    assert given(works, other) == [True, True]
    other.release()
    third = line.ask()
    with works.lend_while_waiting(), works.keep_while_working():
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.001)
    assert given(works, third) == [True, False]


async def test_a_process_that_has_just_started_begins_with_a_few(stack: ExitStack) -> None:
    line = Line(stack, TurnLimiter(4, first=2))
    slots = [line.ask() for _ in range(8)]
    assert sum(given(*slots)) == 2
    for done, at_work in enumerate((3, 4, 4)):
        slots[done].release()
        assert given(*slots) == [done < n <= done + at_work for n in range(8)]
