"""S2: warm state stays coherent, in the running product."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import pytest

from clew.core.ids import ConversationId, EntryId, SessionId
from clew.store.transactions import context
from clew.testing import FakeProvider, Text, echo
from clew.wire import methods
from clew.wire.params import Named, ResumeParams, UndeleteParams
from tests.contract.lifecycle import dying
from tests.contract.lifecycle.counting import CountedStore
from tests.contract.lifecycle.doubles import SUMMARY
from tests.contract.lifecycle.dying import filled
from tests.contract.lifecycle.product import SOON, plan, running
from tests.failing.compacting import Plays

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clew.engine.context_cache import CachedContext
    from clew.store.contract import Store, Tx
    from clew.testing import ProviderRequest, Reply
    from clew.tui.client import RpcClient
    from tests.contract.lifecycle.product import Plan, Product

T = TypeVar("T")
P = ParamSpec("P")

#: The conversation that ``filled`` makes, under the name "talk".
TALK = ConversationId("cnv_talk")


def given(url: str, home: Path, **more: Any) -> Plan:
    """A product that leaves to others what was handed in to them, as two terminals do."""
    return plan(url, home, plugins=(), own_only=True, **more)


def kept(product: Product, conversation: ConversationId) -> CachedContext:
    """The state that a process keeps, as its last turn has left it."""
    found = product.means.context_cache.get(conversation)
    assert found is not None, f"nothing is kept of {conversation}"
    return found


def said(request: ProviderRequest) -> list[str]:
    """The conversation in a request."""
    return [one.text for one in request.messages if one.role != "system"]


async def lead(client: RpcClient, conversation: str) -> None:
    """Have the route lead to another conversation."""
    await client.call(methods.RESUME, ResumeParams(name="route", conversation=conversation))


async def test_s2_1_a_route_that_switches_away_and_back_finds_its_warm_state_again(
    store_url: str, tmp_path: Path
) -> None:
    begun = given(store_url, tmp_path)
    await filled(begun, 1)
    async with running(begun) as product, product.client() as client:
        await lead(client, TALK)
        await product.say(client, "hello", to="route")
        assert len(await product.log("route")) == 3
        other = await product.open(client, "other")
        state = kept(product, TALK)
        messages = [one.message for one in state.messages]
        await lead(client, other)
        assert await product.log("route") == []
        await product.say(client, "hello, other", to="route")
        await lead(client, TALK)
        await product.say(client, "hello again", to="route")
        assert kept(product, TALK) is state
        assert len(state.messages) == 4
        again = [one.message for one in state.messages[: len(messages)]]
        assert all(mine is before for mine, before in zip(again, messages, strict=True))


async def test_s2_2_five_turns_in_a_row_reuse_one_state_and_keep_the_prefix_byte_for_byte(
    store_url: str, tmp_path: Path
) -> None:
    with FakeProvider(echo) as provider:
        begun = given(store_url, tmp_path, provider=provider.openai_url)
        await filled(begun, 1)
        async with running(begun) as product, product.client() as client:
            await product.say(client, "message 0")
            state = kept(product, TALK)
            reused = 0
            for number in range(1, 6):
                await product.say(client, f"message {number}")
                reused += kept(product, TALK) is state
            assert reused == 5
        # A process without any warm state sends the same bytes.
        async with running(begun) as product, product.client() as client:
            await product.say(client, "message 6")
        sent = [_messages(request.body) for request in provider.requests]
    assert len(sent) == 7
    for shorter, longer in pairwise(sent):
        assert longer.startswith(shorter)


def _messages(body: bytes) -> bytes:
    """The messages of a request as they were sent, without the end of their list."""
    begun = body[body.index(b'"messages":[') :]
    last = begun.rindex(b'"role":"user"')
    return begun[: begun.index(b"}", last) + 1]


async def test_s2_3_an_entry_of_another_process_is_in_the_next_request(
    store_url: str, tmp_path: Path
) -> None:
    begun = given(store_url, tmp_path)
    elsewhere = replace(begun, model=Plays(turn=lambda _: Text("from the other one")))
    async with running(begun) as one, one.client() as client:
        first = await one.say(client, "from one")
        state = kept(one, await one.engine.resolve_name("talk"))
        theirs: list[str] = []
        async with running(elsewhere) as other, other.client() as its:
            # Any of both may answer what one of them has accepted.
            while "from the other one" not in theirs:
                theirs += ["from another", await other.say(its, "from another")]
        await one.say(client, "from one again")
        assert kept(one, await one.engine.resolve_name("talk")) is state
        assert said(begun.model.turns[-1]) == [
            "from one",
            first,
            *theirs,
            "from one again",
        ]


async def test_s2_4_refreshing_one_conversation_changes_nothing_of_another(
    store_url: str, tmp_path: Path
) -> None:
    begun = given(store_url, tmp_path, model=Plays(turn=dying.answer))
    async with running(begun) as one, one.client() as client:
        for name in ("a", "b"):
            await one.say(client, f"in {name}", to=name)
        a, b = [await one.engine.resolve_name(name) for name in ("a", "b")]
        state = kept(one, a)
        before = (state.session, state.position, list(state.messages), state.size)
        async with running(replace(begun)) as other, other.client() as its:
            await other.say(its, "in b, from another", to="b")
        await one.say(client, "in b again", to="b")
        assert kept(one, b).position.seq == 5
        assert kept(one, a) is state
        assert (state.session, state.position, list(state.messages), state.size) == before
        await one.say(client, "in a again", to="a")
        assert said(begun.model.turns[-1]) == ["in a", "echo: in a", "in a again"]


async def test_s2_5_after_own_appends_the_kept_position_is_the_stored_one(
    store_url: str, tmp_path: Path
) -> None:
    """A message is stored before its turn reads: the first is 1; after two more it is 3."""
    positions: list[int] = []
    products: list[Product] = []

    def answer(request: ProviderRequest) -> Reply:
        (state,) = products[0].means.context_cache.list_contexts()
        positions.append(state.position.seq)
        return dying.answer(request)

    begun = given(store_url, tmp_path, model=Plays(turn=answer))
    async with running(begun) as product, product.client() as client:
        products.append(product)
        for text in ("hello", "and again", "and more"):
            await product.say(client, text)
        # Each request holds what is stored up to the message that it answers, once.
        assert positions == [1, 3, 5]
        log = [entry.text for entry in await product.log()]
        assert [said(request) for request in begun.model.turns] == [log[:1], log[:3], log[:5]]


class HeldReads(CountedStore):
    """Reads what a conversation's context is, and hands it over when it is told to."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.holds = False
        self.has_read, self.may_go_on = asyncio.Event(), asyncio.Event()

    async def read(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        found = await self.inner.read(job, *args, **kwargs)
        if self.holds and job is context.read_context_update:
            self.holds = False
            self.has_read.set()
            async with asyncio.timeout(SOON):
                await self.may_go_on.wait()
        return found


async def test_s2_6_a_state_that_is_dropped_while_a_turn_reads_is_touched_no_more(
    store_url: str, tmp_path: Path
) -> None:
    stores: list[HeldReads] = []

    def around(store: Store) -> Store:
        stores.append(HeldReads(store))
        return stores[-1]

    begun = given(store_url, tmp_path, around=around)
    async with running(begun) as product, product.client() as client:
        first = await product.say(client, "hello")
        conversation = await product.engine.resolve_name("talk")
        state = kept(product, conversation)
        before = (state.position, list(state.messages))
        (held,) = stores
        held.holds = True
        await product.submit(client, "and again")
        async with asyncio.timeout(SOON):
            await held.has_read.wait()
        # Deleting it ends what is read there, and forgets what is kept.
        await client.call(methods.DELETE, Named(conversation="talk"))
        held.may_go_on.set()
        await product.engine.wait_until_idle()
        await client.call(methods.UNDELETE, UndeleteParams(conversation=conversation))
        await product.say(client, "still there?", to=conversation)
        assert (state.position, list(state.messages)) == before
        assert kept(product, conversation) is not state
        # A context that is read again is read completely.
        assert said(begun.model.turns[-1]) == ["hello", first, "and again\n\nstill there?"]


async def test_s2_7_a_state_of_a_session_that_is_no_more_is_not_reused(
    store_url: str, tmp_path: Path
) -> None:
    begun = given(store_url, tmp_path, flags=dying.WINDOW)
    await filled(begun, 6)
    async with running(begun) as one, one.client() as client:
        await one.say(client, "hello")
        state = kept(one, TALK)
        before = len(state.messages)
        async with running(replace(begun)) as other, other.client() as its:
            await other.command(its, "/compress")
            assert len(await other.lineage()) == 2
        await one.say(client, "and now?")
        assert kept(one, TALK) is not state
        assert len(state.messages) == before
        assert SUMMARY.strip()[:40] in said(begun.model.turns[-1])[0]


@pytest.mark.parametrize(
    "known",
    [{"session_id": SessionId("20200101_000000_cccccc")}, {"entry_id": EntryId("ent_other")}],
    ids=["another-session", "another-log"],
)
async def test_s2_7_a_state_that_the_store_does_not_know_is_not_reused(
    known: dict[str, Any], store_url: str, tmp_path: Path
) -> None:
    """A store that was restored from a backup may have other entries under the same numbers."""
    begun = given(store_url, tmp_path)
    async with running(begun) as product, product.client() as client:
        first = await product.say(client, "hello")
        state = kept(product, await product.engine.resolve_name("talk"))
        # The warm state belongs to a store that no longer exists.
        state.position = replace(state.position, **known)
        state.messages.clear()
        await product.say(client, "and now?")
        assert kept(product, await product.engine.resolve_name("talk")) is not state
        assert said(begun.model.turns[-1]) == ["hello", first, "and now?"]
