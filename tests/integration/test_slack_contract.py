"""The contract suite of channels, on Slack."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from clew.config.secret import Secret
from clew.core.route import Route
from clew.gateway.channel import Channel, ChannelConfig
from clew.gateway.channels.slack.channel import open_channel
from clew.testing.channels import ChannelContract, ChannelPlatform, ShownMessage
from clew.testing.slack import FakeSlack

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence


class Slack:
    """The person with the id U42, and the app."""

    route = Route(platform="slack", kind="dm", chat="D42")

    def __init__(self, fake: FakeSlack) -> None:
        self._fake = fake
        fake.open_dm("U42")

    def create_channel(self) -> Channel:
        return open_channel(
            ChannelConfig(
                name="slack",
                token=Secret.from_text(self._fake.token),
                base_url=self._fake.api_url,
                options=MappingProxyType({"app_token": Secret.from_text(self._fake.app_token)}),
            )
        )

    def post_message(self, text: str) -> None:
        self._fake.post_message(text)

    def shown_messages(self) -> Sequence[ShownMessage]:
        texts = self._fake.list_texts("D42")
        found = zip(self._fake.messages, texts, strict=True)
        return [
            ShownMessage(
                message=one.files[0]["id"] if one.files else one.ts,
                text=text,
                document=one.document,
            )
            for one, text in found
        ]

    def cut_next_call(self, *, after: bool) -> None:
        self._fake.fail_next_call(lost=after)

    def throttle_calls(self, seconds: int) -> None:
        self._fake.throttle_chat("D42", seconds)

    def block_agent(self) -> None:
        self._fake.refuse_chat("D42", "messages_tab_disabled")


class TestSlack(ChannelContract):
    @asynccontextmanager
    async def open_platform(self) -> AsyncGenerator[ChannelPlatform]:
        with FakeSlack() as fake:
            yield Slack(fake)
