"""Orders of programs: once per key and per id, where their history belongs, and abandoned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from clew.core.client_history import HistoryMessage, history_digest, split_last_answer
from clew.core.double_text import DoubleText
from clew.core.entry import NewEntry, Role
from clew.core.ids import IdGenerator, new_session_id
from clew.core.inbox import AcceptResult, IdempotencyKey, InboxOutcome, NewInput
from clew.core.reset_policy import ResetPolicy
from clew.core.route import Route, local_route
from clew.core.scope import LOCAL
from clew.core.session_base import InlineMessage
from clew.core.turn import StopRequest, TurnOutcome
from clew.errors import KeyReused, NotFound
from clew.store.opening import open_store
from clew.store.transactions import (
    context,
    conversations,
    deletion,
    idempotency,
    inbox,
    listing,
    submissions,
    turn_queries,
    turns,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from clew.core.ids import ConversationId, InboxId
    from clew.core.inbox import InboxItem
    from clew.core.turn import Turn
    from clew.store.contract import Store


def draft(ids: IdGenerator, role: Role, text: str) -> NewEntry:
    return NewEntry(
        id=ids.new_entry_id(), role=role, text=text, format="test/1", message=f'"{text}"'
    )


@dataclass
class Shop:
    """Takes orders and serves them by hand."""

    store: Store
    ids: IdGenerator

    def item(self, text: str, rule: DoubleText = DoubleText.QUEUE) -> NewInput:
        return NewInput(id=self.ids.new_inbox_id(), text=text, double_text=rule)

    async def place(
        self, text: str, *, key: IdempotencyKey | None = None, name: str = "talk"
    ) -> AcceptResult:
        return await self.repeat(self.item(text), key=key, name=name)

    async def repeat(
        self, item: NewInput, *, key: IdempotencyKey | None = None, name: str = "talk"
    ) -> AcceptResult:
        return await self.submit(replace(item, key=key), local_route(name))

    async def submit(
        self,
        item: NewInput,
        target: Route | ConversationId | submissions.HistoryKey,
        new: ConversationId | None = None,
    ) -> AcceptResult:
        accepted = await self.store.write(
            submissions.submit_input,
            item,
            target=target,
            new_conversation=new or self.ids.new_conversation_id(),
            session_ids=new_session_id,
            policy=ResetPolicy(),
        )
        assert isinstance(accepted, AcceptResult)
        return accepted

    async def resend(
        self, item: NewInput, *history: str, caller: str = "me", new: Any = None
    ) -> ConversationId:
        said = [
            HistoryMessage("user" if n % 2 == 0 else "assistant", each)
            for n, each in enumerate(history)
        ]
        before, answer = split_last_answer(said)
        resent = submissions.HistoryKey(
            before=history_digest(caller, before),
            now=history_digest(caller, [*said, HistoryMessage("user", item.text)]),
            answer=answer,
            has_answers=bool(answer),
            base=tuple(InlineMessage(format="test/1", message=f'"{each.text}"') for each in said),
        )
        return (await self.submit(item, resent, new)).conversation_id

    def compose(self, item: InboxItem) -> NewEntry:
        return draft(self.ids, Role.USER, item.text)

    async def begin(self, conversation: ConversationId) -> turns.StartedWork:
        begun = await self.store.write(
            turns.begin_work,
            conversation,
            owner=self.ids.new_owner_id(),
            turn=self.ids.new_turn_id(),
            compose=self.compose,
            session_ids=new_session_id,
        )
        assert begun is not None
        return begun

    async def answer(self, conversation: ConversationId, text: str) -> Turn:
        begun = await self.begin(conversation)
        return await self.finish(begun, TurnOutcome.ANSWERED, text)

    async def finish(
        self, begun: turns.StartedWork, outcome: TurnOutcome, text: str | None = None
    ) -> Turn:
        assert begun.turn is not None
        found = await self.store.read(conversations.get_conversation, begun.lease.conversation_id)
        drafts = [] if text is None else [draft(self.ids, Role.ASSISTANT, text)]
        return await self.store.write(
            turns.finish_turn, begun.lease, found.head, begun.turn.id, outcome, drafts=drafts
        )

    async def abandon(self, inbox_id: InboxId) -> bool:
        return await self.store.write(submissions.cancel_submission, inbox_id)


@pytest.fixture
async def shop(store_url: str, tmp_path: Path) -> AsyncGenerator[Shop]:
    millis = iter(range(1_800_000_000_000, 1_900_000_000_000))
    async with await open_store(store_url, home=tmp_path) as store:
        yield Shop(store, IdGenerator(lambda: next(millis)))


KEY = IdempotencyKey(key=b"k" * 32, body=b"b" * 32)


async def test_a_key_stands_for_one_order_and_its_first_answer(shop: Shop) -> None:
    first = await shop.place("hello", key=KEY)
    again = await shop.place("hello", key=KEY)
    assert again.inbox_id == first.inbox_id
    assert again.duplicate
    assert again.answer is None
    await shop.store.write(idempotency.store_answer, KEY.key, status=200, answer="hi")
    await shop.store.write(idempotency.store_answer, KEY.key, status=500, answer="other")
    known = await shop.place("hello", key=KEY)
    assert (known.status, known.answer) == (200, "hi")
    assert len(await shop.store.read(inbox.list_open_items, first.conversation_id)) == 1


async def test_a_key_of_another_request_is_refused_and_stores_nothing(shop: Shop) -> None:
    first = await shop.place("hello", key=KEY)
    with pytest.raises(KeyReused):
        await shop.place("other", key=replace(KEY, body=b"c" * 32))
    assert len(await shop.store.read(inbox.list_open_items, first.conversation_id)) == 1


async def test_a_key_stays_free_when_the_order_could_not_be_placed(shop: Shop) -> None:
    with pytest.raises(NotFound):
        await shop.submit(replace(shop.item("hello"), key=KEY), shop.ids.new_conversation_id())
    assert not (await shop.place("hello", key=KEY)).duplicate


async def test_an_answer_under_a_key_is_deleted_with_its_conversation(shop: Shop) -> None:
    first = await shop.place("hello", key=KEY)
    await shop.store.write(idempotency.store_answer, KEY.key, status=200, answer="hi")
    await shop.store.write(deletion.mark_deleted, first.conversation_id)
    again = await shop.place("hello", key=KEY)
    assert again.answer is None
    assert again.conversation_id != first.conversation_id


async def test_the_same_order_placed_again_is_the_same(shop: Shop) -> None:
    item = shop.item("hello")
    first, again = await shop.repeat(item, key=KEY), await shop.repeat(item, key=KEY)
    assert first.inbox_id == again.inbox_id == item.id


async def test_a_history_continues_its_conversation(shop: Shop) -> None:
    first = await shop.resend(shop.item("one"))
    await shop.answer(first, "1")
    assert await shop.resend(shop.item("two"), "one", "1") == first
    await shop.answer(first, "2")
    assert await shop.resend(shop.item("three"), "one", "1", "two", "2") == first
    assert await shop.resend(shop.item("three"), "one", "1", caller="you") != first


async def test_a_history_that_stands_nowhere_is_the_base_of_a_new_conversation(shop: Shop) -> None:
    new = await shop.resend(shop.item("two"), "one", "1")
    found = await shop.store.read(context.read_head_context, new)
    assert [(each.seq, each.message) for each in found.messages] == [(None, '"one"'), (None, '"1"')]
    assert (await shop.store.read(conversations.get_conversation, new)).adhoc


@pytest.mark.parametrize("what", ["unanswered", "running", "queued", "another answer", "went on"])
async def test_a_history_with_more_or_fewer_messages_does_not_match(shop: Shop, what: str) -> None:
    first = await shop.resend(shop.item("one"))
    if what == "running":
        await shop.begin(first)
    elif what != "unanswered":
        await shop.answer(first, "1" if what != "another answer" else "one")
    if what == "queued":
        await accept(shop, first)
    elif what == "went on":
        await accept(shop, first)
        await shop.answer(first, "by the way")
    assert await shop.resend(shop.item("two"), "one", "1") != first


async def accept(shop: Shop, conversation: ConversationId) -> None:
    await shop.store.write(
        inbox.accept_input,
        shop.item("meanwhile"),
        target=conversation,
        new_conversation=shop.ids.new_conversation_id(),
        session_ids=new_session_id,
    )


async def test_a_failed_question_is_part_of_what_stands(shop: Shop) -> None:
    first = await shop.resend(shop.item("one"))
    await shop.finish(await shop.begin(first), TurnOutcome.FAILED)
    said = HistoryMessage("user", "one")
    resent = submissions.HistoryKey(
        before=history_digest("me", [said]), now=b"n" * 32, answer="", has_answers=False, base=()
    )
    assert (await shop.submit(shop.item("two"), resent)).conversation_id == first


async def test_the_same_resent_order_placed_again_opens_nothing(shop: Shop) -> None:
    first = await shop.resend(shop.item("one"))
    await shop.answer(first, "1")
    item, new = shop.item("two"), shop.ids.new_conversation_id()
    for _ in range(2):
        assert await shop.resend(item, "one", "1", new=new) == first
    page = await shop.store.read(listing.list_conversations, viewer=LOCAL, adhoc=True)
    assert [each.id for each in page.items] == [first]
    await shop.answer(first, "2")
    assert await shop.resend(shop.item("three"), "one", "1", "two", "2") == first


async def test_an_abandoned_order_is_taken_back_while_it_waits(shop: Shop) -> None:
    placed = await shop.place("hello")
    assert await shop.abandon(placed.inbox_id)
    item = await shop.store.read(inbox.get_item, placed.inbox_id)
    assert item.outcome is InboxOutcome.CANCELLED
    assert not await shop.abandon(placed.inbox_id)


async def test_an_abandoned_order_has_its_turn_cancelled(shop: Shop) -> None:
    placed = await shop.place("hello")
    begun = await shop.begin(placed.conversation_id)
    assert await shop.abandon(placed.inbox_id)
    assert begun.turn is not None
    assert (await shop.store.read(turn_queries.get_turn, begun.turn.id)).stop is StopRequest.CANCEL


async def test_a_turn_that_others_joined_continues(shop: Shop) -> None:
    first = await shop.repeat(shop.item("a", DoubleText.STEER))
    begun = await shop.begin(first.conversation_id)
    second = await shop.repeat(shop.item("b", DoubleText.STEER))
    assert begun.turn is not None
    found = await shop.store.read(conversations.get_conversation, first.conversation_id)
    await shop.store.write(
        turns.steer_turn,
        begun.lease,
        found.head,
        begun.turn.id,
        step=1,
        after=found.last_seq,
        compose=shop.compose,
    )
    for placed in (first, second):
        assert not await shop.abandon(placed.inbox_id)
    assert (await shop.store.read(turn_queries.get_turn, begun.turn.id)).stop is None


async def test_an_order_that_is_answered_cannot_be_abandoned(shop: Shop) -> None:
    placed = await shop.place("hello")
    await shop.answer(placed.conversation_id, "hi")
    assert not await shop.abandon(placed.inbox_id)
