"""The rate gate: who asks first passes first, and a wait that comes meanwhile counts."""

from __future__ import annotations

import asyncio

from clew.core.route import Route
from clew.gateway.gate import Gate
from clew.testing.channels import FakeTimer


def chat(number: int) -> Route:
    return Route(platform="memory", kind="dm", chat=str(number))


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def enter_all(gate: Gate, chats: int, passed: list[int]) -> list[asyncio.Task[None]]:
    async def enter(number: int) -> None:
        await gate.enter(chat(number))
        passed.append(number)

    tasks = [asyncio.create_task(enter(number)) for number in range(chats)]
    await settle()
    return tasks


async def test_chats_pass_in_the_order_of_asking_at_the_accounts_pace() -> None:
    timer = FakeTimer()
    gate = Gate(timer, chat_pause=None, account_pause=1.0)
    passed: list[int] = []
    tasks = await enter_all(gate, 5, passed)
    for seconds in range(5):
        assert passed == list(range(seconds + 1))
        assert not gate.try_enter(chat(99)) or seconds == 4
        timer.advance(1.0)
        await settle()
    await asyncio.gather(*tasks)


async def test_a_chat_that_is_closed_while_it_waits_for_its_turn_waits_on() -> None:
    timer = FakeTimer()
    gate = Gate(timer, chat_pause=None, account_pause=1.0)
    passed: list[int] = []
    tasks = await enter_all(gate, 3, passed)
    gate.hold("1", 10.0)
    timer.advance(1.0)
    await settle()
    timer.advance(1.0)
    await settle()
    assert passed == [0, 2]
    timer.advance(10.0)
    await settle()
    assert passed == [0, 2, 1]
    await asyncio.gather(*tasks)
