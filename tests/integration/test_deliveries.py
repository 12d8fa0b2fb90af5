"""Deliveries arrive once, in order, and never while the platform forbids them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from pydantic_ai.messages import ModelResponse, TextPart

from clew.core.delivery import DeliveryState
from clew.errors import NotDelivered, NotSent
from clew.testing.channels import FakeTimer, MemoryPlatform
from clew.testing.channels.memory import CAPABILITIES, MemoryChannel
from tests.channels.desk import MemoryDesk, echo, memory_desk, until
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from clew.core.channel_events import OutboundMessage
    from clew.core.ids import DeliveryId

WORDS = [f"word{number}" for number in range(400)]
LONG = " ".join(WORDS)


def long_answer(messages: Sequence[ModelMessage]) -> ModelResponse:
    """Four messages of the platform for the person 42, one word for others."""
    much = (echo(messages).text or "").endswith(": much")
    return ModelResponse(parts=[TextPart(LONG if much else "short")])


@pytest.fixture
def timer() -> FakeTimer:
    return FakeTimer()


@pytest.fixture
def platform(timer: FakeTimer) -> MemoryPlatform:
    return MemoryPlatform(timer=timer)


@pytest.fixture
async def desk(
    store_url: str, tmp_path: Path, platform: MemoryPlatform, timer: FakeTimer
) -> AsyncGenerator[MemoryDesk]:
    settings = {"stream": False, "double_text": "queue"}
    async with memory_desk(
        store_url, tmp_path, platform, script=long_answer, timer=timer, settings=settings
    ) as found:
        yield found
        assert await found.world.check() == []


async def passes(timer: FakeTimer, seconds: float, *, until_: Callable[[], object]) -> None:
    """Let time pass, little by little, until something is so."""

    def pass_some() -> object:
        found = until_()
        if not found:
            timer.advance(seconds)
        return found

    await wait_until(pass_some, until_.__qualname__)


# A platform's wait


WAITS = [3, 35, 149, 1000]


def once(what: str, nth: int, seconds: float) -> Callable[[str, str], float | None]:
    """Throttle the chat 42 at the nth call of a kind."""
    seen = 0

    def throttles(call: str, chat: str) -> float | None:
        nonlocal seen
        seen += (call, chat) == (what, "42")
        return seconds if (call, chat, seen) == (what, "42", nth) else None

    return throttles


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("nth", [1, 3], ids=["first part", "third part"])
async def test_b085_nothing_is_called_while_a_chat_is_closed_and_the_rest_arrives_after_it(
    desk: MemoryDesk, timer: FakeTimer, wait: int, nth: int
) -> None:
    """B077, B085, B087: resumed at the right part, each part once, others served meanwhile."""
    desk.platform.throttle_hook = once("send", nth, wait)
    desk.platform.post_message("much")
    await until(lambda: desk.platform.throttled)
    desk.platform.post_message("hello", user="7")
    await until(lambda: desk.texts(7))
    timer.advance(wait - 0.5)
    await asyncio.sleep(0.05)
    assert len(desk.texts()) == nth - 1
    assert desk.platform.intrusions == []
    timer.advance(1)
    await until(lambda: len(desk.texts()) == 4)
    await desk.quiet()
    assert " ".join(desk.texts()).split() == WORDS
    assert desk.platform.intrusions == []


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("place", ["edit", "final"])
async def test_b086_a_wait_while_an_answer_is_shown_stops_what_is_shown_and_not_the_answer(
    store_url: str,
    tmp_path: Path,
    platform: MemoryPlatform,
    timer: FakeTimer,
    wait: int,
    place: str,
) -> None:
    def talk(_: Sequence[ModelMessage]) -> ModelResponse:
        return ModelResponse(parts=[TextPart("one two three four")])

    go_on, finish = asyncio.Event(), asyncio.Event()
    async with memory_desk(
        store_url, tmp_path, platform, script=talk, timer=timer, settings={"double_text": "queue"}
    ) as desk:
        stop_at(desk, "two", go_on)
        platform.post_message("hello")
        await passes(timer, 0.5, until_=lambda: desk.texts() == ["one two …"])
        platform.throttle_hook = once("edit", 1, wait)
        if place == "edit":
            stop_at(desk, "three", finish)
        go_on.set()
        await passes(timer, 0.5, until_=lambda: platform.throttled)
        finish.set()
        await desk.world.engine.wait_until_idle()
        timer.advance(platform.throttled["42"] - timer.monotonic() - 0.5)
        await asyncio.sleep(0.05)
        assert desk.texts() == ["one two …"]
        await passes(timer, 1, until_=lambda: desk.texts() == ["one two three four"])
        await desk.quiet()
        assert platform.intrusions == []


def stop_at(desk: MemoryDesk, piece: str, go_on: asyncio.Event) -> None:
    """Have the model wait behind a piece of its answer."""

    async def wait() -> None:
        await go_on.wait()

    desk.world.points.arm(f"piece {piece!r}", wait)


async def test_b086_a_restart_during_a_wait_continues_waiting(
    store_url: str, tmp_path: Path, platform: MemoryPlatform, timer: FakeTimer
) -> None:
    platform.throttle_hook = once("send", 3, 1000)
    settings = {"stream": False}
    open_ = {"script": long_answer, "timer": timer, "settings": settings}
    async with memory_desk(store_url, tmp_path, platform, **open_) as desk:  # pyright: ignore[reportArgumentType]
        platform.post_message("much")
        await until(lambda: platform.throttled)
    timer.advance(900)
    async with memory_desk(store_url, tmp_path, platform, **open_) as desk:  # pyright: ignore[reportArgumentType]
        platform.post_message("hello", user="7")
        await until(lambda: desk.texts(7))
        assert len(desk.texts()) == 2
        timer.advance(101)
        await until(lambda: len(desk.texts()) == 4)
        await desk.quiet()
    assert " ".join(desk.texts()).split() == WORDS
    assert platform.intrusions == []


# Order


async def test_b074_the_parts_of_two_answers_do_not_mix(desk: MemoryDesk) -> None:
    desk.platform.post_message("much")
    desk.platform.post_message("little")
    await until(lambda: len(desk.texts()) == 5)
    assert desk.texts()[-1] == "short"
    assert " ".join(desk.texts()[:-1]).split() == WORDS


# Outcomes that are unknown


async def test_a_part_whose_outcome_is_unknown_is_sent_once_more_and_says_so(
    desk: MemoryDesk, timer: FakeTimer
) -> None:
    """B070, B078."""
    desk.platform.cut_next_call(after=True)
    desk.platform.post_message("hello")
    await passes(timer, 1, until_=lambda: len(desk.texts()) == 2)
    await desk.quiet()
    assert desk.texts() == ["short", "(may be a repeat) short"]


async def test_only_the_part_whose_outcome_is_unknown_is_repeated(
    desk: MemoryDesk, timer: FakeTimer
) -> None:
    desk.platform.next_failures.append((NotSent("not now"), False))
    desk.platform.post_message("much")
    await passes(timer, 1, until_=lambda: len(desk.texts()) == 4)
    assert " ".join(desk.texts()).split() == WORDS


@pytest.mark.parametrize("ability", ["idempotent", "read_back"])
async def test_nothing_is_repeated_where_the_platform_can_tell(
    store_url: str, tmp_path: Path, timer: FakeTimer, ability: str
) -> None:
    able = replace(CAPABILITIES, **{ability: True})  # pyright: ignore[reportArgumentType]
    platform = MemoryPlatform(timer=timer, capabilities=able)
    settings = {"stream": False}
    async with memory_desk(store_url, tmp_path, platform, timer=timer, settings=settings) as desk:
        platform.cut_next_call(after=True)
        platform.post_message("one")
        await desk.answered()
        await passes(timer, 1, until_=lambda: not platform.next_failures)
        await desk.quiet()
        platform.cut_next_call(after=False)
        platform.post_message("two")
        await passes(timer, 1, until_=lambda: len(desk.texts()) == 2)
        await desk.quiet()
        assert desk.texts() == ["You said: one", "You said: two"]


async def test_a_platform_that_never_answers_gets_a_few_marked_tries_and_then_a_dead_letter(
    desk: MemoryDesk, timer: FakeTimer
) -> None:
    for _ in range(20):
        desk.platform.cut_next_call(after=False)
    desk.platform.post_message("hello")

    async def given_up() -> bool:
        timer.advance(60)
        return bool(await desk.world.engine.deliveries.list_deliveries())

    await desk.world.until(given_up)
    ((letter, _),) = await desk.world.engine.deliveries.list_deliveries()
    assert "may have arrived" in (letter.error or "")
    desk.platform.next_failures.clear()
    await desk.world.engine.deliveries.retry_delivery(letter.id)
    await desk.quiet()
    assert desk.texts() == ["(may be a repeat) short"]


# Dead letters


async def test_a_permanently_refused_delivery_is_kept_and_blocks_nothing(desk: MemoryDesk) -> None:
    desk.platform.next_failures.append((NotDelivered("no such chat"), False))
    desk.platform.post_message("one")
    desk.platform.post_message("two")
    await until(lambda: desk.texts() == ["short"])
    await desk.quiet()
    ((letter, _),) = await desk.world.engine.deliveries.list_deliveries()
    assert letter.error == "no such chat"
    await desk.world.engine.deliveries.retry_delivery(letter.id)
    await until(lambda: desk.texts() == ["short", "short"])


async def test_a_waiting_input_can_be_dropped(desk: MemoryDesk, timer: FakeTimer) -> None:
    desk.platform.throttle_calls(1000)
    desk.platform.post_message("one")
    (pending,) = await _waiting(desk)
    await desk.world.engine.deliveries.drop_delivery(pending, why="dropped")
    timer.advance(1001)
    desk.platform.post_message("two")
    await passes(timer, 1, until_=lambda: desk.texts() == ["short"])
    await desk.quiet()
    ((letter, _),) = await desk.world.engine.deliveries.list_deliveries()
    assert (letter.id, letter.error) == (pending, "dropped")


async def test_a_delivery_dropped_while_it_is_sent_stays_dropped(
    desk: MemoryDesk, timer: FakeTimer
) -> None:
    dropping: list[asyncio.Task[None]] = []

    def dropped(what: str, _chat: str) -> float | None:
        # Not at "typing", which comes before the delivery is claimed.
        if what == "send":
            dropping.append(asyncio.create_task(_drop_all(desk)))
        return None

    desk.platform.throttle_hook = dropped
    desk.platform.send_delay = 0.2
    desk.platform.next_failures.append((NotSent("not now"), True))
    desk.platform.post_message("one")
    await passes(timer, 1, until_=lambda: not desk.platform.next_failures)
    await asyncio.gather(*dropping)
    desk.platform.throttle_hook = lambda _what, _chat: None
    desk.platform.post_message("two", user="7")
    await passes(timer, 1, until_=lambda: desk.texts(7))
    await desk.quiet()
    assert desk.texts() == ["short"]


async def _drop_all(desk: MemoryDesk) -> None:
    deliveries = desk.world.engine.deliveries
    for letter, _ in await deliveries.list_deliveries([DeliveryState.SENDING]):
        await deliveries.drop_delivery(letter.id, why="dropped")


async def _waiting(desk: MemoryDesk) -> list[DeliveryId]:
    """Return the pending deliveries at this moment."""
    found: list[DeliveryId] = []

    async def there() -> bool:
        states = [DeliveryState.PENDING]
        found[:] = [one.id for one, _ in await desk.world.engine.deliveries.list_deliveries(states)]
        return bool(found)

    await desk.world.until(there)
    return found


async def test_a_fault_of_the_channel_buries_one_delivery_and_not_the_chat(
    desk: MemoryDesk, monkeypatch: pytest.MonkeyPatch, timer: FakeTimer
) -> None:
    from clew.testing.channels import MemoryChannel  # noqa: PLC0415  (only here)

    render = MemoryChannel.render

    def broken(self: MemoryChannel, message: OutboundMessage) -> Sequence[str]:
        if "word1" in message.text:
            raise ValueError("cannot render that")
        return render(self, message)

    monkeypatch.setattr(MemoryChannel, "render", broken)
    desk.platform.post_message("much")
    desk.platform.post_message("little")
    await passes(timer, 1, until_=lambda: desk.texts() == ["short"])
    ((letter, _),) = await desk.world.engine.deliveries.list_deliveries()
    assert "internal error" in (letter.error or "")


# Showing an answer while it is made


async def test_an_answer_takes_the_place_of_what_was_shown_of_it_also_after_a_restart(
    store_url: str, tmp_path: Path, platform: MemoryPlatform, timer: FakeTimer
) -> None:
    def talk(_: Sequence[ModelMessage]) -> ModelResponse:
        return ModelResponse(parts=[TextPart("one two three")])

    async with memory_desk(store_url, tmp_path, platform, script=talk, timer=timer) as desk:
        stop_at(desk, "two", asyncio.Event())
        platform.post_message("hello")
        await passes(timer, 0.5, until_=lambda: desk.texts() == ["one two …"])
    async with memory_desk(store_url, tmp_path, platform, script=talk, timer=timer) as desk:
        await passes(timer, 0.5, until_=lambda: desk.texts() == ["one two three"])
        await desk.quiet()
    assert desk.texts() == ["one two three"]


async def test_an_answer_whose_preview_is_gone_is_sent_again(
    store_url: str, tmp_path: Path, platform: MemoryPlatform, timer: FakeTimer
) -> None:
    go_on = asyncio.Event()
    async with memory_desk(store_url, tmp_path, platform, script=echo, timer=timer) as desk:
        stop_at(desk, "said:", go_on)
        platform.post_message("hello")
        await passes(timer, 0.5, until_=lambda: desk.texts() == ["You said: …"])
        platform.messages.clear()
        go_on.set()
        await passes(timer, 0.5, until_=lambda: desk.texts() == ["You said: hello"])
        await desk.quiet()


# Nothing to see


async def test_an_answer_that_is_one_open_fence_is_delivered(
    store_url: str, tmp_path: Path, platform: MemoryPlatform
) -> None:
    def script(_: Sequence[ModelMessage]) -> ModelResponse:
        return ModelResponse(parts=[TextPart("```rm -rf /tmp/x && echo done")])

    async with memory_desk(store_url, tmp_path, platform, script=script) as desk:
        platform.post_message("Which command?")
        assert await desk.answered() == ["rm -rf /tmp/x && echo done"]
        await desk.quiet()


async def test_an_invisible_answer_counts_as_none(
    store_url: str, tmp_path: Path, platform: MemoryPlatform
) -> None:
    def script(_: Sequence[ModelMessage]) -> ModelResponse:
        return ModelResponse(parts=[TextPart("\u200b \u2060")])

    async with memory_desk(store_url, tmp_path, platform, script=script) as desk:
        platform.post_message("Which command?")
        (told,) = await desk.answered()
        assert "Try again" in told
        await desk.quiet()


async def test_an_answer_that_was_cut_says_so_in_the_chat(
    store_url: str, tmp_path: Path, platform: MemoryPlatform
) -> None:
    def script(_: Sequence[ModelMessage]) -> ModelResponse:
        return ModelResponse(parts=[TextPart("Once upon a")], finish_reason="length")

    async with memory_desk(
        store_url, tmp_path, platform, script=script, settings={"stream": False}
    ) as desk:
        platform.post_message("Tell me a story")
        (told,) = await desk.answered()
        assert told.startswith("Once upon a\n\n(The answer is incomplete")
        await desk.quiet()


async def test_a_text_that_gives_no_message_is_a_dead_letter(
    desk: MemoryDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def render(_self: MemoryChannel, _message: OutboundMessage) -> list[str]:
        return []

    monkeypatch.setattr(MemoryChannel, "render", render)
    desk.platform.post_message("hello")

    async def buried() -> bool:
        return bool(await desk.world.engine.deliveries.list_deliveries())

    await desk.world.until(buried)
    ((letter, _),) = await desk.world.engine.deliveries.list_deliveries()
    assert letter.error == "the channel makes no message of this text"
    await desk.quiet()
