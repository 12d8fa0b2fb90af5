"""The contract suite of channels, on Signal."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from clew.core.route import Route
from clew.gateway.channel import Channel, ChannelConfig, MemoryChannelStorage
from clew.gateway.channels.signal.channel import open_channel
from clew.testing.channels import ChannelContract, ChannelPlatform, ShownMessage
from clew.testing.signal import FakeSignal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence


class Signal:
    """The person with the id 42, and the daemon."""

    route = Route(platform="signal", kind="dm", chat="42")

    def __init__(self, fake: FakeSignal) -> None:
        self.fake, self._storage = fake, MemoryChannelStorage()

    def create_channel(self) -> Channel:
        return open_channel(
            ChannelConfig(
                name="signal",
                token=None,
                base_url=self.fake.url,
                options=MappingProxyType({"account": self.fake.account}),
                storage=self._storage,
            )
        )

    def post_message(self, text: str) -> None:
        self.fake.post_message(text)

    def shown_messages(self) -> Sequence[ShownMessage]:
        return [
            ShownMessage(
                message=one.id,
                text=one.text,
                document=None if one.file is None else one.file.content.decode(),
            )
            for one in self.fake.sent
        ]

    def cut_next_call(self, *, after: bool) -> None:
        self.fake.fail_next_call(lost=after)

    def throttle_calls(self, seconds: int) -> None:
        self.fake.throttle_user("42", seconds)

    def block_agent(self) -> None:
        self.fake.fail_for("42", "UNREGISTERED_FAILURE")


class TestSignal(ChannelContract):
    @asynccontextmanager
    async def open_platform(self) -> AsyncGenerator[ChannelPlatform]:
        with FakeSignal() as fake:
            yield Signal(fake)
