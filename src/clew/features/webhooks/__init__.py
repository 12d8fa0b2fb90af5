"""Webhook channel: signed HTTP in and out, for platforms without a channel of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.features.webhooks.settings import OPTIONS as OPTIONS
from clew.plugin.webhook_registry import WebhookRegistry

if TYPE_CHECKING:
    from clew.gateway.channel import Channel, ChannelConfig
    from clew.plugin import Registry


def register(registry: Registry) -> None:
    """Register the channel, and the public endpoint that receives for every such channel."""
    webhooks = WebhookRegistry()

    def open_channel(config: ChannelConfig) -> Channel:
        from clew.features.webhooks.channel import open_webhook_channel  # noqa: PLC0415  (declared by every command, needed by few)

        return open_webhook_channel(config, webhooks)

    def make_endpoint() -> object:
        from clew.features.webhooks import endpoint  # noqa: PLC0415  (only servers need it)

        return endpoint.make_endpoint(webhooks)

    registry.add_channel("webhook", open_channel)
    registry.add_operation("webhooks", make_endpoint)
