"""The contract suite of channels, on a webhook."""

from __future__ import annotations

import asyncio
import base64
from contextlib import asynccontextmanager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from clew.config.secret import Secret
from clew.core.route import Route
from clew.features.webhooks.channel import open_webhook_channel
from clew.gateway.channel import Channel, ChannelConfig
from clew.plugin.webhook_registry import WebhookRegistry, WebhookRequest
from clew.testing.channels import ChannelContract, ChannelPlatform, ShownMessage
from clew.testing.webhook import FakeWebhook

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence


def _read_document(data: Mapping[str, Any]) -> str | None:
    if "file" in data:
        return base64.b64decode(data["file"]["content"]).decode()
    text: str | None = data.get("document", {}).get("text")
    return text


class Webhook:
    """The person with the id 42, and a program that hands in what they say."""

    route = Route(platform="webhook", kind="dm", chat="42")

    def __init__(self, fake: FakeWebhook) -> None:
        self._fake, self._webhooks = fake, WebhookRegistry()

    def create_channel(self) -> Channel:
        config = ChannelConfig(
            name="webhook",
            token=None,
            base_url=self._fake.answers_url,
            options=MappingProxyType(
                {"secret": Secret.from_text(self._fake.secret), "documents": True}
            ),
        )
        return open_webhook_channel(config, self._webhooks)

    async def hand_in(self, headers: Mapping[str, str], body: bytes) -> int:
        request = WebhookRequest(headers=headers, body=body)
        return (await self._webhooks.dispatch_request("webhook", request)).status

    def post_message(self, text: str) -> None:
        self._fake.post_message(text)

    def shown_messages(self) -> Sequence[ShownMessage]:
        return [
            ShownMessage(message=one.id, text=one.text, document=_read_document(one.data))
            for one in self._fake.sent
        ]

    def cut_next_call(self, *, after: bool) -> None:
        self._fake.fail_next_call(lost=after)

    def throttle_calls(self, seconds: int) -> None:
        self._fake.throttle_chat("42", seconds)

    def block_agent(self) -> None:
        self._fake.refuse_chat("42")


class TestWebhook(ChannelContract):
    @asynccontextmanager
    async def open_platform(self) -> AsyncGenerator[ChannelPlatform]:
        with FakeWebhook() as fake:
            there = Webhook(fake)
            handing = asyncio.create_task(fake.post_events(there.hand_in))
            try:
                yield there
            finally:
                handing.cancel()
                with suppress(asyncio.CancelledError):
                    await handing
