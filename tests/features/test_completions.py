"""Completions: what has ended is told to the model, and is never taken for a person's message."""

from __future__ import annotations

import asyncio
import itertools
import json
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from clew.agent.models import close_models_on_exit
from clew.core import completion
from clew.core.entry import Role
from clew.core.inbox import InboxKind, InboxOutcome
from clew.core.route import Route
from clew.engine.engine import Engine
from clew.features import titles
from clew.plugin import TurnContext, get_turn_context
from clew.plugin.registry import Features
from clew.runtime import build_services
from clew.store.checks.registry import find_all
from clew.store.opening import open_store
from clew.store.transactions import conversations, deletion
from clew.store.transactions.completions import accept_completion
from clew.testing import Calls, FakeProvider, ScriptedCall, Text
from tests.integration.api_server import settings_for
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from clew.core.entry import Entry
    from clew.core.ids import ConversationId, InboxId
    from clew.plugin import Registry
    from clew.store.contract import Store, Tx
    from clew.testing import ProviderRequest, Reply

CHAT = Route(platform="telegram", kind="dm", chat="42")


_numbers = itertools.count()


class World:
    """An engine with features, its provider and store."""

    def __init__(self, engine: Engine, provider: FakeProvider, store: Store) -> None:
        self.engine, self.provider, self.store = engine, provider, store

    async def say(self, text: str) -> ConversationId:
        accepted = await self.engine.submit(text, target=CHAT)
        await self.engine.wait_for_input(accepted)
        return accepted.conversation_id

    async def end(self, conversation: ConversationId, text: str, **more: Any) -> InboxId:
        """Something ends."""
        name = f"thing_{next(_numbers)}"
        context = self.engine.feature_context
        for _ in range(2):
            assert await context.wake(conversation, kind="thing", id=name, text=text, **more)
        return completion.make_completion_id(name)

    async def quiet(self, conversation: ConversationId) -> list[Entry]:
        """Wait until nothing is open, and return the log."""

        async def is_done() -> bool:
            return await self.store.read(_count_open) == 0

        await wait_until(is_done)
        assert await self.store.read(find_all) == []
        return list(await self.engine.read_entries(conversation))


def _end_hundred(t: Tx, conversation: ConversationId) -> None:
    for number in range(100):
        new = completion.NewCompletion(
            id=completion.make_completion_id(f"end_{number}"),
            conversation=conversation,
            text=f"end {number}",
            cause=completion.Cause(kind="thing", id=f"end_{number}"),
        )
        assert accept_completion(t, new)


def _count_open(t: Tx) -> int:
    return t.fetch_value(
        "SELECT (SELECT count(*) FROM inbox WHERE outcome IS NULL)"
        " + (SELECT count(*) FROM turn WHERE state <> 'done')"
    )


def _read_inbox(t: Tx) -> list[tuple[str, str, str]]:
    return [
        (kind, outcome, turn)
        for kind, outcome, turn in t.fetch_all(
            "SELECT kind, outcome, turn_id FROM inbox ORDER BY n"
        )
    ]


def _read_notices(t: Tx) -> list[str]:
    bodies = t.fetch_column("SELECT body FROM delivery WHERE kind = 'notice' ORDER BY n")
    return [json.loads(body)["notice"] for body in bodies]


@asynccontextmanager
async def open_world(
    home: Path,
    url: str,
    answer: Callable[[ProviderRequest], Reply],
    *tools: Callable[..., object],
    tokens: int = 500_000,
) -> AsyncGenerator[World]:
    features = Features()

    def register(registry: Registry) -> None:
        for tool in tools:
            registry.add_tool(tool, effect="once")

    features.register("tested", register)
    features.register("titles", titles.register)
    with FakeProvider(answer) as provider:
        async with close_models_on_exit(), await open_store(url, home=home) as store:
            settings = settings_for(home, provider=provider)
            agent = replace(settings.agent, unattended_tokens=tokens)
            services = build_services(replace(settings, agent=agent), store, features)
            async with Engine(services, role="test", version="0") as engine:
                yield World(engine, provider, store)


@pytest.fixture(autouse=True)
def short_window(monkeypatch: pytest.MonkeyPatch) -> None:
    # Longer than a busy machine needs for two ends, one after the other.
    monkeypatch.setattr(completion, "COLLECT_FOR", timedelta(milliseconds=800))


def last_text(request: ProviderRequest) -> str:
    return request.messages[-1].text


@pytest.mark.both_databases
async def test_what_has_ended_begins_a_turn_joins_one_or_comes_with_a_message(
    tmp_path: Path, store_url: str
) -> None:
    contexts: list[TurnContext] = []

    async def end_two(conversation: str) -> str:
        """End two things, and wait until the first step may see them."""
        context = get_turn_context()
        assert context is not None
        contexts.append(context)
        for _ in range(2):
            await world.end(context.conversation, "/stop within", turn=context.turn)
        await asyncio.sleep(0.9)
        return "ended"

    def answer(request: ProviderRequest) -> Reply:
        if last_text(request) == "two please":
            return Calls((ScriptedCall("end_two", {"conversation": ""}),))
        return Text(f"answer {len(request.messages)}")

    async with open_world(tmp_path, store_url, answer, end_two) as world:
        home = await world.say("hello")
        await world.say("two please")
        # Begins a turn, with another one that ends at about the same time.
        await world.end(home, "/new\nmade", turn=contexts[0].turn)
        await world.end(home, "and this")
        log = await world.quiet(home)
        # A person waits for none of them.
        await world.end(home, "third")
        await world.say("and now?")
        log = await world.quiet(home)
        inputs = await world.store.read(_read_inbox)
        said = [entry for entry in log if entry.role is Role.USER]
        deliveries = await world.store.read(
            lambda t: t.fetch_column("SELECT route FROM delivery ORDER BY n")
        )
        conversation = await world.store.read(conversations.get_conversation, home)
        await world.store.write(deletion.mark_deleted, home)
        while await world.store.write(deletion.delete_slice, home, rows=1):
            assert await world.store.read(find_all) == [], "it is checked while it is removed"
    outcomes = [outcome for _, outcome, _ in inputs]
    assert outcomes == ["turn", "turn", "steered", "steered", "turn", "merged", "turn", "merged"]
    assert [(e.text, e.is_caused) for e in said] == [
        ("hello", False), ("two please", False), ("/stop within", True), ("/stop within", True),
        ("/new\nmade", True), ("and this", True), ("third", True), ("and now?", False),
    ]  # fmt: skip
    assert conversation.title == "hello"
    assert set(deliveries) == {CHAT.key}, "the answer to what has ended is told in the chat"
    assert len(deliveries) == 4
    body = json.dumps(world.provider.requests[-1].json)
    assert body.count("; not written by a person]") == 5
    (one,) = contexts
    assert (one.attended, one.hops) == (True, 0)


@pytest.mark.both_databases
async def test_turns_without_a_person_end_after_five_rounds_and_with_their_tokens(
    tmp_path: Path, store_url: str
) -> None:
    hops: list[tuple[int, bool]] = []

    async def begin() -> str:
        """Begin something that ends at once."""
        context = get_turn_context()
        assert context is not None
        hops.append((context.hops, context.attended))
        await world.end(context.conversation, "ended", turn=context.turn)
        return "begun"

    def answer(request: ProviderRequest) -> Reply:
        if request.messages[-1].results or "enough" in last_text(request):
            return Text("well")
        return Calls((ScriptedCall("begin", {}),))

    async with open_world(tmp_path, store_url, answer, begin) as world:
        home = await world.say("go")
        log = await world.quiet(home)
        assert hops[0] == (0, True)
        # On a busy machine some ends join the turn that is still running, even the person's own.
        attended = [by_person for _, by_person in hops]
        assert attended == sorted(attended, reverse=True)
        assert not attended[-1]
        rounds = [number for number, _ in hops]
        assert rounds == sorted(rounds)
        assert 5 <= rounds[-1] <= 6
        assert [e.text for e in log if e.text.startswith("5 rounds ran without you.")] != []
        assert await world.store.read(_read_notices) == ["rounds_without_person"]
        kinds = [(kind, outcome) for kind, outcome, _ in await world.store.read(_read_inbox)]
        assert kinds[-1] == (InboxKind.COMPLETION.value, InboxOutcome.EXECUTED.value)
        # What ends without hops begins a turn; the next message of the person tells of all.
        await world.say("enough")
        assert json.dumps(world.provider.requests[-1].json).count("[report of thing") == len(hops)
    async with open_world(tmp_path, store_url, answer, tokens=1) as world:
        for _ in range(2):
            await world.end(home, "later", turn=log[0].turn_id)
            log = await world.quiet(home)
        assert world.provider.requests == []
        assert [e.text for e in log[-4:] if e.is_caused] == ["later", "later"]
        notices = await world.store.read(_read_notices)
        assert notices == ["rounds_without_person", "unattended_tokens_spent"]


async def test_a_hundred_ends_at_once_make_few_turns_and_keep_their_order(
    tmp_path: Path, store_url: str
) -> None:
    async with open_world(tmp_path, store_url, lambda _: Text("seen")) as world:
        home = await world.say("hello")
        # In one commit: a busy machine takes longer than a window for a hundred of them.
        await world.store.write(_end_hundred, home)
        log = await world.quiet(home)
        inputs = await world.store.read(_read_inbox)
    assert [e.text for e in log if e.is_caused] == [f"end {number}" for number in range(100)]
    assert len({turn for _, _, turn in inputs}) - 1 <= 11


async def test_a_retry_of_a_turn_that_no_person_began_stays_one(
    tmp_path: Path, store_url: str
) -> None:
    async with open_world(tmp_path, store_url, lambda _: Text("seen")) as world:
        home = await world.say("hello")
        await world.end(home, "made")
        await world.quiet(home)
        await world.engine.sessions.queue_retry(home, route=CHAT)
        log = await world.quiet(home)
        assert [(e.text, e.is_caused) for e in log if e.role is Role.USER] == [
            ("hello", False), ("made", True), ("made", True),
        ]  # fmt: skip
        gone = await world.engine.feature_context.wake(
            type(home)("cnv_gone"), kind="thing", id="thing_x", text="late"
        )
        assert not gone
