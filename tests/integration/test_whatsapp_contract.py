"""The contract suite of channels, on WhatsApp."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from clew.config.secret import Secret
from clew.core.route import Route
from clew.features.whatsapp.channel import open_whatsapp_channel
from clew.gateway.channel import Channel, ChannelConfig, MemoryChannelStorage
from clew.plugin.webhook_registry import WebhookRegistry, WebhookRequest
from clew.testing.channels import ChannelContract, ChannelPlatform, ShownMessage
from clew.testing.whatsapp import FakeWhatsApp

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence


class WhatsApp:
    """The person with the number 42, and Meta, which posts webhooks."""

    route = Route(platform="whatsapp", kind="dm", chat="42")

    def __init__(self, fake: FakeWhatsApp) -> None:
        self.fake, self._webhooks = fake, WebhookRegistry()
        self._storage = MemoryChannelStorage()

    def create_channel(self) -> Channel:
        options = {name: str(value) for name, value in self.fake.settings.items()}
        token = Secret.from_text(options.pop("token"))
        config = ChannelConfig(
            name="whatsapp",
            token=token,
            base_url=self.fake.url,
            options=options,
            storage=self._storage,
        )
        return open_whatsapp_channel(config, self._webhooks)

    async def hand_in(self, headers: Mapping[str, str], body: bytes) -> int:
        request = WebhookRequest(headers=headers, body=body)
        return (await self._webhooks.dispatch_request("whatsapp", request)).status

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
        self.fake.block_agent("42")


@asynccontextmanager
async def open_whatsapp() -> AsyncGenerator[WhatsApp]:
    with FakeWhatsApp() as fake:
        there = WhatsApp(fake)
        handing = asyncio.create_task(fake.post_events(there.hand_in))
        try:
            yield there
        finally:
            handing.cancel()
            with suppress(asyncio.CancelledError):
                await handing


class TestWhatsApp(ChannelContract):
    @asynccontextmanager
    async def open_platform(self) -> AsyncGenerator[ChannelPlatform]:
        async with open_whatsapp() as there:
            yield there
