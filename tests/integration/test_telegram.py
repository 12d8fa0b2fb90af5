"""A conversation over Telegram, from the update to the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.channels.desk import Desk, telegram_desk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path


@pytest.fixture
async def desk(store_url: str, tmp_path: Path) -> AsyncGenerator[Desk]:
    async with telegram_desk(store_url, tmp_path) as found:
        yield found
        assert await found.world.check() == []


async def test_a_message_is_answered(desk: Desk) -> None:
    desk.telegram.say("Hello")
    assert await desk.answered() == ["You said: Hello"]
    await desk.quiet()
