"""S1: what closing a client ends, and which session an old id means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.events import EntryAppended, InputCompleted, TurnStarted
from clew.core.ids import ConversationId, SessionId
from clew.core.route import Route, local_route
from clew.core.session import COMPRESSION, REOPEN, TUI_CLOSE
from clew.store.transactions import conversations
from tests.contract.lifecycle.filling import fill
from tests.contract.lifecycle.house import open_house

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW = "20260101_000000_aaaaaa", "20260101_000001_bbbbbb"
TALK = local_route("talk")
CHAT = Route(platform="telegram", kind="dm", chat="c1", user="u1")


async def test_s1_1_closing_a_client_ends_the_open_session_and_not_its_compacted_predecessor(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path, session_ids=[OLD, NEW]) as house:
        attached = await house.engine.clients.attach(TALK, front="tui")
        await house.store.write(fill, attached.conversation, 20)
        await house.engine.compact(SessionId(OLD))
        assert await house.engine.clients.close(attached.client)
        await house.quiet(attached.conversation)
        assert await house.lineage(TALK.key) == [(OLD, COMPRESSION), (NEW, TUI_CLOSE)]
        assert house.notes.told == [("finalize", {"session_id": NEW, "platform": "local"})]


async def test_s1_1_the_next_message_reopens_what_closing_ended(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        attached = await house.engine.clients.attach(TALK, front="tui")
        await house.say("remember me", to=TALK)
        await house.engine.clients.close(attached.client)
        await house.quiet(attached.conversation)
        ended = await house.say("do you?", to=TALK)
        assert ended.conversation == attached.conversation
        assert (await house.head(TALK.key)).opened_by == REOPEN
        assert "remember me" in house.provider.wire[-1][0]


async def test_s1_1_while_another_client_is_attached_closing_only_detaches(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        first = await house.engine.clients.attach(TALK, front="tui")
        second = await house.engine.clients.attach(TALK, front="web")
        assert not await house.engine.clients.close(first.client)
        assert (await house.head(TALK.key)).is_open
        assert await house.engine.clients.close(second.client)
        await house.quiet(first.conversation)
        assert not (await house.head(TALK.key)).is_open


async def test_s1_1_closing_a_conversation_of_a_channel_only_detaches(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        attached = await house.engine.clients.attach(TALK, front="tui")
        await house.store.write(conversations.move_route, CHAT.key, attached.conversation)
        assert not await house.engine.clients.close(attached.client)
        await house.quiet(attached.conversation)
        assert (await house.head(TALK.key)).is_open


async def test_s1_1_a_client_that_attaches_before_the_end_is_carried_out_keeps_the_session(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        first = await house.engine.clients.attach(TALK, front="tui")
        running = await house.hold(to=TALK)
        assert await house.engine.clients.close(first.client)
        await house.engine.clients.attach(TALK, front="tui")
        house.let_go()
        await house.end(running)
        await house.quiet(first.conversation)
        assert (await house.head(TALK.key)).is_open
        assert house.notes.told == []


async def test_s1_1_clients_of_a_process_that_died_hold_nothing_open(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        await house.engine.clients.attach(TALK, front="tui")
    async with open_house(store_url, tmp_path) as house:
        attached = await house.engine.clients.attach(TALK, front="tui")
        assert await house.engine.clients.close(attached.client)


async def test_s1_2_closing_a_client_before_anything_was_said_ends_its_session(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path, session_ids=[OLD]) as house:
        attached = await house.engine.clients.attach(TALK, front="tui")
        assert attached.session == OLD
        await house.engine.clients.close(attached.client)
        await house.quiet(attached.conversation)
        assert await house.lineage(TALK.key) == [(OLD, TUI_CLOSE)]
        assert house.provider.sent == []


async def test_s1_3_after_a_compaction_the_old_session_id_acts_on_the_new_session(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path, session_ids=[OLD, NEW], window=200_000) as house:
        conversation = await house.open(TALK)
        await house.store.write(fill, conversation, 30)
        first = await house.say("with compaction", to=ConversationId(OLD))
        assert (first.session, house.summariser.calls) == (NEW, 1)
        again = await house.engine.submit("once more", target=ConversationId(OLD))
        named = [
            session
            async for event in house.engine.stream_input(again)
            if (session := _session(event)) is not None
        ]
        assert named
        assert set(named) == {NEW}
        assert again.conversation_id == conversation


def _session(event: object) -> str | None:
    match event:
        case TurnStarted(session=session) | InputCompleted(session=session):
            return session
        case EntryAppended(entry=entry):
            return entry.session_id
        case _:
            return None
