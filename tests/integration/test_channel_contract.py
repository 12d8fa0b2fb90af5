"""The contract suite of channels, on every channel that there is."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from clew.config.secret import Secret
from clew.core.route import Route
from clew.gateway.channel import Channel, ChannelConfig
from clew.gateway.channels.telegram.channel import open_channel as open_telegram
from clew.testing.channels import ChannelContract, ChannelPlatform, MemoryPlatform, ShownMessage
from clew.testing.channels.memory import CAPABILITIES
from clew.testing.telegram import FakeTelegram

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence


class TestMemory(ChannelContract):
    @asynccontextmanager
    async def open_platform(self) -> AsyncGenerator[ChannelPlatform]:
        yield MemoryPlatform()


class TestMemoryThatRemembers(ChannelContract):
    """As a platform that can be asked, and sends the same key once."""

    @asynccontextmanager
    async def open_platform(self) -> AsyncGenerator[ChannelPlatform]:
        yield MemoryPlatform(capabilities=replace(CAPABILITIES, idempotent=True, read_back=True))


class Telegram:
    """The person with the id 42, and the bot."""

    route = Route(platform="telegram", kind="dm", chat="42")

    def __init__(self, fake: FakeTelegram) -> None:
        self._fake = fake
        fake.open_dm(42)

    def create_channel(self) -> Channel:
        return open_telegram(
            ChannelConfig(
                name="telegram",
                token=Secret.from_text(self._fake.token),
                base_url=self._fake.base_url,
                options=MappingProxyType({}),
            )
        )

    def post_message(self, text: str) -> None:
        self._fake.post_message(text)

    def shown_messages(self) -> Sequence[ShownMessage]:
        return [
            ShownMessage(message=str(one.id), text=one.text, document=one.document)
            for one in self._fake.messages
        ]

    def cut_next_call(self, *, after: bool) -> None:
        self._fake.fail_next_call(lost=after)

    def throttle_calls(self, seconds: int) -> None:
        self._fake.throttle_chat(42, seconds)

    def block_agent(self) -> None:
        self._fake.block_bot(42)


class TestTelegram(ChannelContract):
    @asynccontextmanager
    async def open_platform(self) -> AsyncGenerator[ChannelPlatform]:
        with FakeTelegram() as fake:
            yield Telegram(fake)
