"""The contract suite of channels, on Mattermost."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from clew.config.secret import Secret
from clew.core.route import Route
from clew.gateway.channel import Channel, ChannelConfig, MemoryChannelStorage
from clew.gateway.channels.mattermost.channel import open_channel
from clew.testing.channels import ChannelContract, ChannelPlatform, ShownMessage
from clew.testing.mattermost import FakeMattermost

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence


class Mattermost:
    """The person with the id u42, and the bot."""

    route = Route(platform="mattermost", kind="dm", chat="du42")

    def __init__(self, fake: FakeMattermost) -> None:
        self._fake, self._marks = fake, MemoryChannelStorage()
        fake.open_dm("u42")

    def create_channel(self) -> Channel:
        return open_channel(
            ChannelConfig(
                name="mattermost",
                token=Secret.from_text(self._fake.token),
                base_url=self._fake.url,
                options=MappingProxyType({"user": "clew"}),
                storage=self._marks,
            )
        )

    def post_message(self, text: str) -> None:
        self._fake.post_message(text)

    def shown_messages(self) -> Sequence[ShownMessage]:
        return [
            ShownMessage(message=one.id, text=one.message, document=one.document)
            for one in self._fake.sent
        ]

    def cut_next_call(self, *, after: bool) -> None:
        self._fake.fail_next_call(lost=after)

    def throttle_calls(self, seconds: int) -> None:
        self._fake.throttle_calls("du42", seconds)

    def block_agent(self) -> None:
        self._fake.block_bot("u42")


class TestMattermost(ChannelContract):
    @asynccontextmanager
    async def open_platform(self) -> AsyncGenerator[ChannelPlatform]:
        with FakeMattermost(early=True) as fake:
            yield Mattermost(fake)
