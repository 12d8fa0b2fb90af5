"""The rate gate: who asks first passes first, and a wait that comes meanwhile counts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from clew.core.access import ChannelAccount
from clew.core.channel_events import ButtonPressed, MessageSender
from clew.core.route import Route
from clew.errors import Throttled
from clew.gateway.platform_client import PlatformClient
from clew.gateway.rate_limiter import RateLimiter
from clew.testing.channels import FakeTimer, MemoryPlatform

if TYPE_CHECKING:
    from clew.engine.deliveries import DeliveryQueue


def chat(number: int) -> Route:
    return Route(platform="memory", kind="dm", chat=str(number))


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def enter_all(gate: RateLimiter, chats: int, passed: list[int]) -> list[asyncio.Task[None]]:
    async def enter(number: int) -> None:
        await gate.acquire(chat(number))
        passed.append(number)

    tasks = [asyncio.create_task(enter(number)) for number in range(chats)]
    await settle()
    return tasks


async def test_chats_pass_in_the_order_of_asking_at_the_accounts_pace() -> None:
    timer = FakeTimer()
    gate = RateLimiter(timer, chat_pause=None, account_pause=1.0)
    passed: list[int] = []
    tasks = await enter_all(gate, 5, passed)
    for seconds in range(5):
        assert passed == list(range(seconds + 1))
        assert not gate.try_acquire(chat(99)) or seconds == 4
        timer.advance(1.0)
        await settle()
    await asyncio.gather(*tasks)


async def test_a_chat_that_is_closed_while_it_waits_for_its_turn_waits_on() -> None:
    timer = FakeTimer()
    gate = RateLimiter(timer, chat_pause=None, account_pause=1.0)
    passed: list[int] = []
    tasks = await enter_all(gate, 3, passed)
    gate.pause("1", 10.0)
    timer.advance(1.0)
    await settle()
    timer.advance(1.0)
    await settle()
    assert passed == [0, 2]
    timer.advance(10.0)
    await settle()
    assert passed == [0, 2, 1]
    await asyncio.gather(*tasks)


class Holds:
    """Keeps what a platform asks, as the store does."""

    def __init__(self) -> None:
        self.kept: dict[str, int] = {}

    async def pause_chat(self, account: ChannelAccount, chat: str, *, until: int) -> None:
        self.kept[chat] = until


def line_to(platform: MemoryPlatform, timer: FakeTimer, holds: Holds) -> PlatformClient:
    account = ChannelAccount(channel="memory", account=platform.account)
    return PlatformClient(platform.create_channel(), account, cast("DeliveryQueue", holds), timer)


async def test_a_wait_that_is_asked_where_a_press_is_answered_closes_the_chat() -> None:
    timer, holds = FakeTimer(), Holds()
    platform = MemoryPlatform(timer=timer)
    platform.throttle_hook = lambda what, _: 35.0 if what == "answer" else None
    line = line_to(platform, timer, holds)
    pressed = ButtonPressed(
        event="press1", route=chat(42), sender=MessageSender(id="42"), message="m1", data="yes"
    )
    await line.answer_button(pressed, "done", closed=True)
    assert line.rate_limiter.pause_remaining("42") == 35
    assert holds.kept == {"42": timer.epoch_millis() + 35_000}
    await line.answer_button(pressed, "done", closed=True)
    assert platform.intrusions == []


async def test_a_channels_own_lookup_passes_the_gate_and_blocks_no_chat() -> None:
    timer, holds = FakeTimer(), Holds()
    platform = MemoryPlatform(timer=timer)
    line = line_to(platform, timer, holds)
    asked: list[str] = []

    async def look() -> str:
        asked.append("Ann")
        if len(asked) == 1:
            raise Throttled(5)
        return "Ann"

    looking = asyncio.create_task(line.channel.rate_limited(look))
    await settle()
    assert line.rate_limiter.pause_remaining("1") == 0
    timer.advance(4.9)
    await settle()
    assert len(asked) == 1
    timer.advance(0.2)
    assert await looking == "Ann"
    assert len(asked) == 2
