"""A chat is told once when another front ends, deletes or brings back its conversation."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from clew.core import session as reasons
from clew.core.route import local_route
from clew.store.opening import open_store
from clew.store.transactions.deletion import mark_deleted
from clew.testing.channels import FakeTimer, MemoryPlatform
from clew.wording import DELETED_NOTICE, RESTORED_NOTICE
from tests.channels.desk import MemoryDesk, memory_desk, until
from tests.integration.test_deliveries import passes, stop_at

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from clew.core.ids import ConversationId

CLOSED = "This conversation was closed elsewhere. Your next message continues it."


@pytest.fixture
def platform() -> MemoryPlatform:
    return MemoryPlatform()


@pytest.fixture
async def desk(
    store_url: str, tmp_path: Path, platform: MemoryPlatform
) -> AsyncGenerator[MemoryDesk]:
    settings = {"stream": False, "double_text": "queue"}
    async with memory_desk(store_url, tmp_path, platform, settings=settings) as found:
        yield found
        assert await found.world.check() == []


async def talked(desk: MemoryDesk) -> ConversationId:
    """The chat 42 has a conversation."""
    desk.platform.post_message("hello")
    await desk.answered()
    await desk.quiet()
    return await desk.world.engine.resolve_name(desk.platform.route.key)


@pytest.mark.both_databases
async def test_a_chat_whose_conversation_is_closed_elsewhere_is_notified_once(
    desk: MemoryDesk,
) -> None:
    conversation = await talked(desk)
    for _ in range(2):
        # The second finds nothing open.
        await desk.world.engine.sessions.queue_close(conversation)
        await desk.quiet()
    assert desk.texts() == ["You said: hello", CLOSED]
    desk.platform.post_message("again")
    await desk.answered(3)
    await desk.quiet()
    assert desk.texts() == ["You said: hello", CLOSED, "You said: again"]
    assert await desk.world.engine.resolve_name(desk.platform.route.key) == conversation


@pytest.mark.parametrize("who", ["chat", "local"])
async def test_of_two_fronts_only_the_other_is_notified_of_the_end(
    desk: MemoryDesk, who: str
) -> None:
    conversation = await talked(desk)
    engine = desk.world.engine
    other = local_route("main") if who == "local" else desk.platform.build_route("7")
    await engine.sessions.resume_conversation(other, conversation)
    if who == "chat":
        desk.platform.post_message("/new", user="7")
        await until(lambda: desk.texts(7))
    else:
        await engine.start_new_conversation(other)
    await until(lambda: len(desk.texts()) == 2)
    await desk.quiet()
    assert desk.texts()[1].startswith("This conversation was ended elsewhere.")
    assert len(desk.texts(7)) == (who == "chat")
    # Nor is it told again with the next message, which starts a new one.
    desk.platform.post_message("again")
    await desk.answered(3)
    await desk.quiet()
    assert desk.texts()[2:] == ["You said: again"]
    assert await engine.resolve_name(desk.platform.route.key) != conversation


async def test_ending_ones_own_conversation_sends_no_notice(desk: MemoryDesk) -> None:
    await talked(desk)
    desk.platform.post_message("/new")
    await desk.answered(2)
    await desk.quiet()
    assert len(desk.texts()) == 2
    assert "elsewhere" not in desk.texts()[1]


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "with a grace time"])
async def test_a_chat_whose_conversation_is_deleted_elsewhere_is_notified_once(
    desk: MemoryDesk, at_once: bool
) -> None:
    conversation = await talked(desk)
    await desk.world.engine.delete_conversation(conversation, at_once=at_once)
    await desk.answered(2)
    await desk.quiet()
    assert desk.texts() == ["You said: hello", DELETED_NOTICE]
    if at_once:
        # Rows that were kept for the notice are deleted once it has arrived.
        await desk.world.engine.run_maintenance()
    else:
        await desk.world.engine.undelete_conversation(conversation)
        await desk.answered(3)
        await desk.quiet()
        assert desk.texts()[2:] == [RESTORED_NOTICE]
    desk.platform.post_message("again")
    await desk.quiet()
    assert desk.texts()[-1] == "You said: again"
    there = await desk.world.engine.resolve_name(desk.platform.route.key) == conversation
    assert there is not at_once


async def test_a_chat_is_notified_of_a_deletion_once_also_after_a_restart(
    store_url: str, tmp_path: Path, platform: MemoryPlatform
) -> None:
    settings = {"stream": False, "double_text": "queue"}
    async with memory_desk(store_url, tmp_path, platform, settings=settings) as desk:
        conversation = await talked(desk)
    async with await open_store(store_url, home=tmp_path) as store:
        for _ in range(2):
            assert await store.write(mark_deleted, conversation, notice=DELETED_NOTICE)
    for _ in range(2):
        async with memory_desk(store_url, tmp_path, platform, settings=settings) as desk:
            await desk.world.engine.run_maintenance()
            await desk.answered(2)
            await desk.quiet()
            await desk.world.engine.run_maintenance()
            assert await desk.world.check() == []
    assert platform.list_texts() == ["You said: hello", DELETED_NOTICE]


async def test_a_preview_in_a_deleted_conversation_says_that_it_is_unfinished(
    store_url: str, tmp_path: Path
) -> None:
    timer = FakeTimer()
    platform = MemoryPlatform(timer=timer)
    async with memory_desk(store_url, tmp_path, platform, timer=timer) as desk:
        stop_at(desk, "said:", asyncio.Event())
        platform.post_message("hello")
        await passes(timer, 0.5, until_=lambda: desk.texts() == ["You said: …"])
        conversation = await desk.world.engine.resolve_name(platform.route.key)
        await desk.world.engine.delete_conversation(conversation)
        await passes(timer, 0.5, until_=lambda: len(desk.texts()) == 2)
        await desk.quiet()
    assert desk.texts() == ["(This answer was not finished.)", DELETED_NOTICE]


@pytest.mark.parametrize("reason", [reasons.IDLE, reasons.DAILY])
async def test_an_automatic_end_is_announced_with_the_next_message(
    store_url: str, tmp_path: Path, platform: MemoryPlatform, reason: str
) -> None:
    settings = {"stream": False, "double_text": "queue"}
    async with memory_desk(store_url, tmp_path, platform, settings=settings) as desk:
        first = await talked(desk)
        await desk.world.engine.sessions.queue_close(first, reason=reason)
        await desk.quiet()
        assert len(desk.texts()) == 1
        # It was stored with the message, before the turn: a kill in between loses nothing.
        begins = asyncio.Event()

        async def wait() -> None:
            await begins.wait()

        desk.world.points.arm("turns.begin_work before", wait)
        platform.post_message("still there?")
        await desk.answered(2)
        begins.set()
        await desk.answered(3)
        await desk.quiet()
        assert await desk.world.check() == []
    assert platform.list_texts()[1].startswith("A new conversation was started")
    assert f"/resume {first}" in platform.list_texts()[1]
    assert platform.list_texts()[2:] == ["You said: still there?"]
