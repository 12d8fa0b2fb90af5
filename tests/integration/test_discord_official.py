"""The fake Discord, as the library sees it that most bots are written with."""

from __future__ import annotations

import asyncio
import warnings
from typing import TYPE_CHECKING, Any

with warnings.catch_warnings():
    # It brings sound along, which an older Python warns of.
    warnings.simplefilter("ignore", DeprecationWarning)
    import discord as library
    from discord.gateway import DiscordWebSocket
    from discord.http import Route
from yarl import URL

from clew.testing.discord import FakeDiscord
from tests.channels.desk import until

if TYPE_CHECKING:
    import pytest


async def test_the_official_client_finds_nothing_odd_about_the_fake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with FakeDiscord(heartbeat=5.0) as discord:
        monkeypatch.setattr(Route, "BASE", discord.api_url)
        gateway = URL(discord.url.replace("http", "ws") + "/gateway")
        monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", gateway)
        intents = library.Intents.default()
        intents.message_content = True
        client = library.Client(intents=intents, guild_ready_timeout=0.1)
        ready = asyncio.Event()

        @client.event
        async def on_ready() -> None:
            ready.set()

        @client.event
        async def on_message(message: Any) -> None:
            if not message.author.bot:
                await message.channel.send(f"heard {message.content}")

        running = asyncio.create_task(client.start(discord.token))
        await asyncio.wait_for(ready.wait(), 120)
        discord.post_message("hello")
        await until(lambda: discord.list_texts("742") == ["heard hello"])
        await client.close()
        await asyncio.wait({running})
