"""S2: warm state stays coherent."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import pytest
from pydantic_ai.messages import CompactionPart

from clew.agent.models import ModelSpec, build_model, models_closed
from clew.core.ids import EntryId, SessionId
from clew.core.route import local_route
from clew.engine.warm import Warm
from clew.store.transactions import context, conversations
from clew.testing import FakeProvider, echo
from tests.contract.lifecycle.counting import CountedStore
from tests.contract.lifecycle.doubles import shape
from tests.contract.lifecycle.filling import fill
from tests.contract.lifecycle.house import House, open_house
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clew.core.ids import ConversationId
    from clew.store.contract import Store, Tx

T = TypeVar("T")
P = ParamSpec("P")

A, B, ROUTE = local_route("a"), local_route("b"), local_route("route")


async def _position(house: House, conversation: ConversationId) -> int:
    return (await house.store.read(context.head_context, conversation)).last_seq


async def test_s2_1_a_route_that_switches_away_and_back_finds_its_warm_state_again(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        a, b = await house.open(A), await house.open(B)
        await house.store.write(fill, a, 3, size=10)
        warm = house.means.warm
        await house.store.write(conversations.move_route, ROUTE.key, a)
        state = await warm.refresh(a)
        kept = list(state.kept)
        assert len(kept) == 3
        await house.store.write(conversations.move_route, ROUTE.key, b)
        assert (await warm.refresh(b)).kept == []
        await house.store.write(conversations.move_route, ROUTE.key, a)
        again = await warm.refresh(a)
        assert again is state
        assert all(mine is before for mine, before in zip(again.kept, kept, strict=True))


async def test_s2_2_five_turns_in_a_row_reuse_one_state_and_keep_the_prefix_byte_for_byte(
    store_url: str, tmp_path: Path
) -> None:
    with FakeProvider(echo) as provider:
        async with models_closed():
            model = build_model(ModelSpec(name="openai-chat:fake", base_url=provider.openai_url))
            async with open_house(store_url, tmp_path, model=model) as house:
                assert await _reused(house, turns=5) == 5
            # A process without any warm state sends the same bytes.
            async with open_house(store_url, tmp_path, model=model) as house:
                await house.say("message 5", to=A)
        sent = [_messages(request.body) for request in provider.requests]
    assert len(sent) == 6
    for shorter, longer in pairwise(sent):
        assert longer.startswith(shorter)


async def _reused(house: House, *, turns: int) -> int:
    conversation = await house.open(A)
    state = await house.means.warm.refresh(conversation)
    reused = 0
    for number in range(turns):
        await house.say(f"message {number}", to=A)
        reused += await house.means.warm.refresh(conversation) is state
    return reused


def _messages(body: bytes) -> bytes:
    """The messages of a request as they were sent, without the end of their list."""
    begun = body[body.index(b'"messages":[') :]
    last = begun.rindex(b'"role":"user"')
    return begun[: begun.index(b"}", last) + 1]


async def test_s2_3_what_another_process_appends_is_in_the_next_request(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path, own_only=True) as one:
        conversation = (await one.say("from one", to=A)).conversation
        assert conversation in one.means.warm
        async with open_house(store_url, tmp_path, own_only=True) as other:
            # Only the other one works on this: nothing was handed in here.
            await one.engine.idle()
            await other.store.write(fill, conversation, 2, size=10)
        await one.say("from one again", to=A)
        assert shape(one.provider.sent[-1]) == [
            "from one",
            "You said: from one",
            "1: xxxxxxx",
            "2: xxxxxxx",
            "from one again",
        ]


async def test_s2_4_refreshing_one_conversation_changes_nothing_of_another(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        a, b = await house.open(A), await house.open(B)
        await house.store.write(fill, a, 3, size=10)
        state = await house.means.warm.refresh(a)
        before = (state.session, state.position, list(state.kept), state.size)
        await house.store.write(fill, b, 7, size=10)
        assert (await house.means.warm.refresh(b)).position.seq == 7
        assert (state.session, state.position, list(state.kept), state.size) == before
        assert (await house.means.warm.refresh(a)).position == before[1]


async def test_s2_5_after_own_appends_the_kept_position_is_the_stored_one(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        conversation = await house.open(A)
        assert (await house.means.warm.refresh(conversation)).position.seq == 0
        await house.say("hello", to=A)
        state = await house.means.warm.refresh(conversation)
        assert state.position.seq == 2 == await _position(house, conversation)


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


async def test_s2_6_a_state_that_is_still_being_built_is_not_touched_by_a_refresh(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        conversation = await house.open(A)
        await house.store.write(fill, conversation, 3, size=10)
        slow = SlowReads(house.store)
        warm = Warm(slow)
        late, soon = asyncio.Event(), asyncio.Event()
        slow.gates = [late, soon]
        first = asyncio.create_task(warm.refresh(conversation))
        await slow.has_read(first)
        soon.set()
        built = await warm.refresh(conversation)
        kept = list(built.kept)
        late.set()
        # The one that was late builds on what is there: nothing is doubled, nothing replaced.
        assert await first is built
        assert list(built.kept) == kept
        assert len(kept) == 3


async def test_s2_6_a_refresh_that_read_less_takes_nothing_away_from_one_that_read_more(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        conversation = await house.open(A)
        await house.store.write(fill, conversation, 3, size=10)
        slow = SlowReads(house.store)
        warm = Warm(slow)
        state = await warm.refresh(conversation)
        late, soon = asyncio.Event(), asyncio.Event()
        slow.gates = [late, soon]
        first = asyncio.create_task(warm.refresh(conversation))
        await slow.has_read(first)
        await house.say("and more", to=A)
        soon.set()
        assert len((await warm.refresh(conversation)).kept) == 5
        late.set()
        assert len((await first).kept) == 5
        assert state.position.seq == 5


async def test_s2_6_a_state_that_was_dropped_is_read_anew(store_url: str, tmp_path: Path) -> None:
    async with open_house(store_url, tmp_path) as house:
        conversation = await house.open(A)
        await house.store.write(fill, conversation, 3, size=10)
        state = await house.means.warm.refresh(conversation)
        house.means.warm.drop(conversation)
        assert conversation not in house.means.warm
        await house.say("hello", to=A)
        assert len(state.kept) == 3
        assert len((await house.means.warm.refresh(conversation)).kept) == 5


async def test_s2_7_a_state_of_a_session_that_is_no_more_is_not_reused(
    store_url: str, tmp_path: Path
) -> None:
    async with (
        open_house(store_url, tmp_path, own_only=True) as one,
        open_house(store_url, tmp_path, own_only=True) as other,
    ):
        conversation = await one.open(A)
        await one.store.write(fill, conversation, 20, size=18_000)
        state = await one.means.warm.refresh(conversation)
        assert (await other.engine.compact(SessionId(state.session.id))).moved
        await one.say("and now?", to=A)
        assert await one.means.warm.refresh(conversation) is not state
        assert isinstance(one.provider.sent[-1][0].parts[0], CompactionPart)
        assert len(state.kept) == 20


@pytest.mark.parametrize(
    "known",
    [{"session_id": SessionId("20200101_000000_cccccc")}, {"entry_id": EntryId("ent_other")}],
    ids=["another-session", "another-log"],
)
async def test_s2_7_a_state_that_the_store_does_not_know_is_not_reused(
    known: dict[str, Any], store_url: str, tmp_path: Path
) -> None:
    """A store that was restored from a backup may have other entries under the same numbers."""
    async with open_house(store_url, tmp_path) as house:
        conversation = await house.open(A)
        await house.store.write(fill, conversation, 3, size=10)
        state = await house.means.warm.refresh(conversation)
        state.position = replace(state.position, **known)
        again = await house.means.warm.refresh(conversation)
        assert again is not state
        assert len(again.kept) == 3


async def test_states_are_dropped_by_count_and_by_size_the_least_recently_used_first(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        found = [await house.open(local_route(name)) for name in "abc"]
        for conversation in found:
            await house.store.write(fill, conversation, 2, size=1_000)
        by_count = Warm(house.store, most=2)
        for conversation in found:
            await by_count.refresh(conversation)
        assert [one in by_count for one in found] == [False, True, True]
        by_size = Warm(house.store, most_bytes=6_000)
        for conversation in (*found[:2], found[0], found[2]):
            await by_size.refresh(conversation)
        assert [one in by_size for one in found] == [True, False, True]
