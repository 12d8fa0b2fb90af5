"""S1 through JSON-RPC: closing, old session ids, and titles that were asked for too early."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from clew.api.builtin_operations import BUILTIN_OPERATIONS
from clew.api.operation_context import OperationContext
from clew.api.rpc.connection import serve_client
from clew.config import Settings
from clew.core.ids import ConversationId
from clew.core.route import local_route
from clew.core.session import COMPRESSION, REOPEN, TUI_CLOSE
from clew.errors import StoreUnavailable
from clew.store.transactions import titles
from clew.tui.client import RpcClient
from clew.tui.transports import in_process
from clew.wire import methods
from clew.wire.params import CompactParams, Named, OpenParams, RenameParams, SubmitParams
from tests.contract.lifecycle.failing import FailingStore
from tests.contract.lifecycle.filling import fill
from tests.contract.lifecycle.house import House, open_house
from tests.integration.rpc_clients import until_closed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
    from pathlib import Path

OLD, NEW = "20260101_000000_aaaaaa", "20260101_000001_bbbbbb"
#: Errors that do not make a title invalid.
PASSING = [StoreUnavailable("for now"), RuntimeError("some other fault"), OSError("no space")]
TALK = local_route("talk")


@asynccontextmanager
async def client(house: House, home: Path) -> AsyncGenerator[RpcClient]:
    office = OperationContext(
        operations=BUILTIN_OPERATIONS, engine=house.engine, settings=Settings(home=home)
    )

    async def serve(frames: AsyncIterator[str], send: Callable[[str], Awaitable[None]]) -> None:
        await serve_client(office, frames, send)

    async with RpcClient(in_process(serve)) as found:
        yield found


async def opened(one: RpcClient, name: str = "talk") -> ConversationId:
    found = await one.call(methods.OPEN, OpenParams(conversation=name))
    return ConversationId(found.conversation.id)


async def test_s1_1_closing_over_rpc_ends_the_open_session_and_not_its_compacted_predecessor(
    store_url: str, tmp_path: Path
) -> None:
    async with (
        open_house(store_url, tmp_path, session_ids=[OLD, NEW]) as house,
        client(house, tmp_path) as one,
    ):
        conversation = await opened(one)
        await house.store.write(fill, conversation, 20)
        compacted = await one.call(methods.COMPACT, CompactParams(session_id=OLD))
        assert (compacted.moved, compacted.session) == (True, NEW)
        # By the id of the session that compaction closed.
        assert (await one.call(methods.CLOSE, Named(conversation=OLD))).ends
        await house.quiet(conversation)
        assert await house.lineage(TALK.key) == [(OLD, COMPRESSION), (NEW, TUI_CLOSE)]
        await one.submit("talk", "still there?")
        await house.quiet(conversation)
        assert (await house.head(TALK.key)).opened_by == REOPEN


async def test_s1_1_of_two_clients_over_rpc_only_the_last_that_closes_ends_the_session(
    store_url: str, tmp_path: Path
) -> None:
    async with (
        open_house(store_url, tmp_path) as house,
        client(house, tmp_path) as one,
        client(house, tmp_path) as two,
    ):
        conversation = await opened(one)
        await opened(two)
        assert not (await one.call(methods.CLOSE, Named(conversation="talk"))).ends
        assert (await house.head(TALK.key)).is_open
        assert (await two.call(methods.CLOSE, Named(conversation="talk"))).ends
        await house.quiet(conversation)
        assert not (await house.head(TALK.key)).is_open


async def test_s1_1_a_connection_that_breaks_only_detaches(store_url: str, tmp_path: Path) -> None:
    async with open_house(store_url, tmp_path) as house, client(house, tmp_path) as one:
        conversation = await opened(one)
        async with client(house, tmp_path) as other:
            await opened(other)
        await house.quiet(conversation)
        assert (await house.head(TALK.key)).is_open
        # It holds nothing open either.
        assert (await one.call(methods.CLOSE, Named(conversation="talk"))).ends


async def test_s1_2_closing_over_rpc_before_anything_was_said_ends_the_session(
    store_url: str, tmp_path: Path
) -> None:
    async with (
        open_house(store_url, tmp_path, session_ids=[OLD]) as house,
        client(house, tmp_path) as one,
    ):
        conversation = await opened(one)
        assert (await one.call(methods.CLOSE, Named(conversation=conversation))).ends
        await house.quiet(conversation)
        assert await house.lineage(TALK.key) == [(OLD, TUI_CLOSE)]
        assert house.provider.sent == []


async def test_s1_3_after_a_compaction_inside_a_submitted_prompt_the_old_session_acts_on_the_new(
    store_url: str, tmp_path: Path
) -> None:
    async with (
        open_house(store_url, tmp_path, session_ids=[OLD, NEW], window=200_000) as house,
        client(house, tmp_path) as one,
    ):
        conversation = await opened(one)
        await house.store.write(fill, conversation, 30)
        last = (await one.call(methods.STATUS, Named(conversation=OLD))).conversation.entries
        async with one.follow(conversation, after=last) as events:
            first = await one.call(methods.SUBMIT, SubmitParams(session_id=OLD, text="compact"))
            assert first.session == OLD
            told = await until_closed(events)
        # The turn began in the old session; what it says from the compaction on names the new one.
        named = [(notice.type, notice.session) for notice in told]
        moved = next(place for place, (_, session) in enumerate(named) if session == NEW)
        assert {session for _, session in named[:moved]} == {OLD}
        assert {session for _, session in named[moved:]} == {NEW}
        assert {"entry", "turn_closed"} <= {kind for kind, _ in named[moved:]}
        await house.quiet(conversation)
        assert (house.summariser.calls, await house.lineage(TALK.key)) == (
            1,
            [(OLD, COMPRESSION), (NEW, None)],
        )
        last = (await one.call(methods.STATUS, Named(conversation=OLD))).conversation.entries
        async with one.follow(conversation, after=last) as events:
            again = await one.call(methods.SUBMIT, SubmitParams(session_id=OLD, text="once more"))
            assert (again.conversation, again.session) == (conversation, NEW)
            told = await until_closed(events)
        assert {notice.session for notice in told} == {NEW}
        assert {"entry", "turn_begun", "turn_closed"} <= {notice.type for notice in told}


async def test_a_compaction_can_be_looked_at_first_and_taken_back(
    store_url: str, tmp_path: Path
) -> None:
    async with (
        open_house(store_url, tmp_path, session_ids=[OLD, NEW]) as house,
        client(house, tmp_path) as one,
    ):
        await house.store.write(fill, await opened(one), 20)
        preview = await one.call(methods.COMPACT, CompactParams(session_id=OLD, dry_run=True))
        assert preview.goes
        assert (preview.moved, house.summariser.calls, preview.session) == (False, 0, OLD)
        done = await one.call(methods.COMPACT, CompactParams(session_id=OLD))
        assert (done.moved, done.messages_after) == (True, preview.messages_after)
        undone = await one.call(methods.COMPACT, CompactParams(session_id=OLD, undo=True))
        assert undone.session not in (OLD, NEW)
        assert (undone.messages_before, undone.messages_after) == (done.messages_after, 20)


async def _title(house: House, conversation: ConversationId) -> str | None:
    await house.quiet(conversation)
    return (await house.engine.get_view(conversation)).conversation.title


async def test_s1_4_a_title_asked_for_over_rpc_before_anything_was_said_is_dropped_if_it_is_taken(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house, client(house, tmp_path) as one:
        early = await one.call(methods.RENAME, RenameParams(conversation="talk", title="Trip"))
        conversation = ConversationId(early.id)
        assert early.title is None
        other = await opened(one, "other")
        await one.call(methods.RENAME, RenameParams(conversation=other, title="Trip"))
        await one.submit("talk", "plan my trip to Rome")
        assert await _title(house, conversation) == "plan my trip to Rome"
        assert await house.store.read(titles.get_pending_title, conversation) is None


@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
async def test_s1_5_a_title_asked_for_over_rpc_is_kept_for_a_later_turn_whatever_failed(
    error: Exception, store_url: str, tmp_path: Path
) -> None:
    failing = FailingStore.at("titles.apply_pending_title", error)
    async with (
        open_house(store_url, tmp_path, around=failing.around) as house,
        client(house, tmp_path) as one,
    ):
        found = await one.call(methods.OPEN, OpenParams(conversation="talk", title="Trip"))
        conversation = ConversationId(found.conversation.id)
        await one.submit("talk", "hello")
        await house.quiet(conversation)
        view = await house.engine.get_view(conversation)
        assert view.conversation.title is None
        assert await house.store.read(titles.get_pending_title, conversation) == "Trip"
        failing.mend()
        await one.submit("talk", "hello again")
        assert await _title(house, conversation) == "Trip"
