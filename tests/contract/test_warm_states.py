"""Warm states by themselves: reads that overtake each other, and how many are kept."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from clew.core.route import local_route
from clew.engine.context_cache import ContextCache
from tests.contract.lifecycle.counting import CountedStore
from tests.contract.lifecycle.filling import fill
from tests.contract.lifecycle.house import open_house
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clew.store.contract import Store, Tx

T = TypeVar("T")
P = ParamSpec("P")

A = local_route("a")


class SlowReads(CountedStore):
    """Reads what is there, and hands it over when it is told to."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.gates: list[asyncio.Event] = []
        self._waiting: set[asyncio.Task[Any] | None] = set()

    async def read(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        found = await self.inner.read(job, *args, **kwargs)
        if self.gates:
            gate = self.gates.pop(0)
            self._waiting.add(asyncio.current_task())
            await gate.wait()
        return found

    async def has_read(self, task: asyncio.Task[Any]) -> None:
        """Wait until a task has read, and was not yet given what it read."""
        await wait_until(lambda: task in self._waiting, "the task has read", pause=0.001)


async def test_a_state_that_is_still_being_built_is_not_touched_by_a_refresh(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        conversation = await house.open(A)
        await house.store.write(fill, conversation, 3, size=10)
        slow = SlowReads(house.store)
        warm = ContextCache(slow)
        late, soon = asyncio.Event(), asyncio.Event()
        slow.gates = [late, soon]
        first = asyncio.create_task(warm.refresh_context(conversation))
        await slow.has_read(first)
        soon.set()
        built = await warm.refresh_context(conversation)
        kept = list(built.messages)
        late.set()
        # The one that was late builds on what is there: nothing is doubled, nothing replaced.
        assert await first is built
        assert list(built.messages) == kept
        assert len(kept) == 3


async def test_a_refresh_that_read_less_takes_nothing_away_from_one_that_read_more(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        conversation = await house.open(A)
        await house.store.write(fill, conversation, 3, size=10)
        slow = SlowReads(house.store)
        warm = ContextCache(slow)
        state = await warm.refresh_context(conversation)
        late, soon = asyncio.Event(), asyncio.Event()
        slow.gates = [late, soon]
        first = asyncio.create_task(warm.refresh_context(conversation))
        await slow.has_read(first)
        await house.say("and more", to=A)
        soon.set()
        assert len((await warm.refresh_context(conversation)).messages) == 5
        late.set()
        assert len((await first).messages) == 5
        assert state.position.seq == 5


async def test_states_are_dropped_by_count_and_by_size_the_least_recently_used_first(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        found = [await house.open(local_route(name)) for name in "abc"]
        for conversation in found:
            await house.store.write(fill, conversation, 2, size=1_000)
        by_count = ContextCache(house.store, most=2)
        for conversation in found:
            await by_count.refresh_context(conversation)
        assert [one in by_count for one in found] == [False, True, True]
        by_size = ContextCache(house.store, most_bytes=6_000)
        for conversation in (*found[:2], found[0], found[2]):
            await by_size.refresh_context(conversation)
        assert [one in by_size for one in found] == [True, False, True]
