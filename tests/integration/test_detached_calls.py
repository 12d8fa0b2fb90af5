"""Calls to platforms that are cancelled at any moment cost no connection of the pool."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from clew.gateway.channels.telegram.transport import TelegramApi
from clew.testing.telegram import FakeTelegram

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    Call = Callable[[], Coroutine[Any, Any, object]]

#: Rounds of the event loop: more than a call takes.
ROUNDS = 40
#: Rounds after which a call that has not arrived never will.
_MAX_ROUNDS = 1_000_000


async def _run_until_arrived(
    task: asyncio.Future[object], arrived: Callable[[], int], count: int
) -> None:
    # Every round counts: the moment in which a connection is lost is one of them.
    for _ in range(_MAX_ROUNDS):
        if arrived() != count or task.done():
            return
        await asyncio.sleep(0)


async def _cancel_everywhere(call: Call, arrived: Callable[[], int]) -> None:
    """Cancel calls after each number of rounds from their beginning, and from their arrival."""
    for rounds in range(ROUNDS):
        for from_arrival in (False, True):
            count = arrived()
            task = asyncio.ensure_future(call())
            if from_arrival:
                await _run_until_arrived(task, arrived, count)
            for _ in range(rounds):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])


async def test_telegram_is_reached_after_calls_were_cancelled_at_any_moment() -> None:
    with FakeTelegram() as telegram:
        telegram.post_message("hello")
        api = TelegramApi(telegram.token, telegram.base_url, connections=1)

        async def show_typing() -> object:
            return await api.call_api("sendChatAction", {"chat_id": 42, "action": "typing"})

        try:
            async with asyncio.timeout(120):
                await _cancel_everywhere(show_typing, lambda: len(telegram.calls))
                await show_typing()
        finally:
            await api.aclose()
