"""An answer that is shown while it is made ends as the answer, or says that none follows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest
import structlog
from pydantic_ai.messages import ModelResponse, TextPart

from clew.core.entry import Role
from clew.core.turn import StopRequest
from clew.errors import NotSent
from clew.store.opening import open_store
from clew.store.transactions import turn_queries
from clew.testing.channels import FakeTimer, MemoryPlatform
from clew.testing.channels.memory import MemoryChannel
from tests.channels.desk import MemoryDesk, echo, memory_desk, until
from tests.integration.test_deliveries import once, passes, stop_at

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from clew.core.route import Route


@pytest.fixture
def timer() -> FakeTimer:
    return FakeTimer()


@pytest.fixture
def platform(timer: FakeTimer) -> MemoryPlatform:
    return MemoryPlatform(timer=timer)


# An answer that is stopped


def talk(_: Sequence[ModelMessage]) -> ModelResponse:
    return ModelResponse(parts=[TextPart("one two three four")])


async def spoken(desk: MemoryDesk) -> list[str]:
    """Return the agent's texts in chat 42, from the context."""
    engine = desk.world.engine
    conversation = await engine.resolve_name(desk.platform.route.key)
    entries = await engine.read_entries(conversation, after=0, limit=100)
    return [one.text.strip() for one in entries if one.role is Role.ASSISTANT and one.text]


@pytest.mark.parametrize("how", ["/stop", "something else"])
async def test_the_stored_part_of_a_stopped_answer_is_in_the_chat(
    store_url: str, tmp_path: Path, platform: MemoryPlatform, timer: FakeTimer, how: str
) -> None:
    go_on = asyncio.Event()
    settings = {"double_text": "interrupt"}
    async with memory_desk(
        store_url, tmp_path, platform, script=talk, timer=timer, settings=settings
    ) as desk:
        stop_at(desk, "two", go_on)
        platform.post_message("hello")
        await passes(timer, 0.5, until_=lambda: desk.texts() == ["one two …"])
        stop_at(desk, "three", asyncio.Event())
        go_on.set()
        await until(lambda: "piece 'three'" in desk.world.points.names)
        platform.post_message(how)
        await passes(timer, 0.5, until_=lambda: desk.texts()[0] == "one two three")
        await desk.quiet()
        said = await spoken(desk)
        assert said[0] == "one two three"
        await passes(
            timer, 0.5, until_=lambda: [text for text in desk.texts() if text in said] == said
        )


async def test_the_stored_part_of_a_stopped_answer_is_sent_where_no_preview_was(
    store_url: str, tmp_path: Path, platform: MemoryPlatform, timer: FakeTimer
) -> None:
    """Read the answer on another front while it is made, so that it is streamed."""
    settings = {"double_text": "interrupt", "stream": False}
    async with memory_desk(
        store_url, tmp_path, platform, script=talk, timer=timer, settings=settings
    ) as desk:
        platform.post_message("hello")
        await until(desk.texts)
        conversation = await desk.world.engine.resolve_name(platform.route.key)
        events = desk.world.engine.stream_events(conversation, after=0, live=True)
        reading = asyncio.ensure_future(read_to_end(events))
        stop_at(desk, "two", asyncio.Event())
        platform.post_message("again")
        await until(lambda: "piece 'two'" in desk.world.points.names)
        platform.post_message("something else")
        await passes(timer, 0.5, until_=lambda: len(desk.texts()) == 3)
        await desk.quiet()
        assert desk.texts() == await spoken(desk)
        assert desk.texts()[1].strip() == "one two"
        reading.cancel()


async def read_to_end(events: AsyncIterator[object]) -> None:
    async for _ in events:
        pass


async def test_a_beginning_that_no_answer_follows_says_so(
    store_url: str, tmp_path: Path, platform: MemoryPlatform, timer: FakeTimer
) -> None:
    async with memory_desk(store_url, tmp_path, platform, script=talk, timer=timer) as desk:
        stop_at(desk, "two", asyncio.Event())
        platform.post_message("hello")
        await passes(timer, 0.5, until_=lambda: desk.texts() == ["one two …"])
    async with await open_store(store_url, home=tmp_path) as store:
        (turn,) = await store.read(turn_queries.list_unfinished_turns)
        assert await store.write(turn_queries.request_stop, turn.id, StopRequest.STOP)
    async with memory_desk(store_url, tmp_path, platform, script=talk, timer=timer) as desk:
        await passes(timer, 0.5, until_=lambda: not desk.texts()[0].endswith("…"))
        await desk.quiet()
    # Nothing of it was known to the process that went on.
    assert desk.texts() == ["(This answer was not finished.)"]


@pytest.mark.both_databases
async def test_a_beginning_that_was_taken_back_says_so(
    store_url: str, tmp_path: Path, platform: MemoryPlatform, timer: FakeTimer
) -> None:
    settings = {"double_text": "rollback"}
    async with memory_desk(
        store_url, tmp_path, platform, script=talk, timer=timer, settings=settings
    ) as desk:
        stop_at(desk, "two", asyncio.Event())
        platform.post_message("hello")
        await passes(timer, 0.5, until_=lambda: desk.texts() == ["one two …"])
        platform.post_message("something else")
        await passes(timer, 0.5, until_=lambda: len(desk.texts()) == 2)
        await desk.quiet()
    assert desk.texts() == ["(This answer was not finished.)", "one two three four"]


class Slow(MemoryChannel):
    """Takes long to say where a message stands."""

    go_on = asyncio.Event()

    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        found = await super().send(route, chunk, key=key)
        await self.go_on.wait()
        return found


def slowly(platform: MemoryPlatform) -> Slow:
    return Slow(platform)


async def test_an_answer_that_ends_while_its_beginning_is_sent_stands_once(
    store_url: str,
    tmp_path: Path,
    platform: MemoryPlatform,
    timer: FakeTimer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MemoryPlatform, "create_channel", slowly)
    monkeypatch.setattr(Slow, "go_on", asyncio.Event())
    go_on = asyncio.Event()
    async with memory_desk(store_url, tmp_path, platform, script=talk, timer=timer) as desk:
        stop_at(desk, "two", go_on)
        platform.post_message("hello")
        # Only the first beginning is sent: the channel does not return from it.
        await until(lambda: "piece 'two'" in desk.world.points.names)
        await passes(timer, 0.5, until_=lambda: desk.texts() == ["one two …"])
        go_on.set()
        await desk.world.engine.wait_until_idle()
        Slow.go_on.set()
        await passes(timer, 0.5, until_=lambda: desk.texts() != ["one two …"])
        await desk.quiet()
    assert desk.texts() == ["one two three four"]


# A channel that breaks its contract


class NoIds(MemoryChannel):
    """Sends, and says nothing of where."""

    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        await super().send(route, chunk, key=key)
        return cast("str", None)


def without_ids(platform: MemoryPlatform) -> NoIds:
    return NoIds(platform)


async def test_a_channel_that_gives_no_ids_shows_nothing_twice_unmarked(
    store_url: str,
    tmp_path: Path,
    platform: MemoryPlatform,
    timer: FakeTimer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MemoryPlatform, "create_channel", without_ids)
    go_on = asyncio.Event()
    with structlog.testing.capture_logs() as logs:
        async with memory_desk(store_url, tmp_path, platform, script=talk, timer=timer) as desk:
            stop_at(desk, "two", go_on)
            platform.post_message("hello")
            # Without an id it is never edited: all of it must be there when it is first shown.
            await until(lambda: "piece 'two'" in desk.world.points.names)
            await passes(timer, 0.5, until_=lambda: desk.texts() == ["one two …"])
            go_on.set()
            await passes(timer, 0.5, until_=lambda: len(desk.texts()) == 2)
            await desk.quiet()
            assert await desk.world.check() == []
    assert desk.texts() == ["one two …", "(may be a repeat) one two three four"]
    complaints = [one for one in logs if one["event"] == "channel_gives_no_id"]
    assert [one["log_level"] for one in complaints] == ["error"]


async def test_nothing_is_shown_of_an_answer_before_the_one_before_has_arrived(
    store_url: str, tmp_path: Path, platform: MemoryPlatform, timer: FakeTimer
) -> None:
    settings = {"double_text": "queue"}
    async with memory_desk(
        store_url, tmp_path, platform, script=echo, timer=timer, settings=settings
    ) as desk:
        platform.throttle_hook = once("send", 1, 100)
        platform.post_message("first")
        await until(lambda: platform.throttled)
        await desk.world.engine.wait_until_idle()
        stop_at(desk, "said:", asyncio.Event())
        platform.post_message("second")
        await until(lambda: "piece 'said:'" in desk.world.points.names)
        timer.advance(50)
        await asyncio.sleep(0)
        assert desk.texts() == []
        await passes(timer, 1, until_=lambda: len(desk.texts()) == 2)
        assert desk.texts() == ["You said: first", "You said: …"]


async def test_a_preview_that_was_certainly_not_sent_is_forgotten(
    store_url: str, tmp_path: Path, platform: MemoryPlatform, timer: FakeTimer
) -> None:
    platform.next_failures.append((NotSent("no way"), False))
    go_on = asyncio.Event()
    async with memory_desk(store_url, tmp_path, platform, script=talk, timer=timer) as desk:
        stop_at(desk, "two", go_on)
        platform.post_message("hello")
        await passes(timer, 0.5, until_=lambda: not platform.next_failures)
        go_on.set()
        await passes(timer, 0.5, until_=desk.texts)
        await desk.quiet()
    assert desk.texts() == ["one two three four"]
