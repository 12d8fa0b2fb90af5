"""WhatsApp channel: signed webhooks in, the Cloud API out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.features.whatsapp.settings import OPTIONS as OPTIONS
from clew.plugin.webhook_registry import WebhookRegistry

if TYPE_CHECKING:
    from clew.gateway.channel import Channel, ChannelConfig
    from clew.plugin import Registry


def register(registry: Registry) -> None:
    """Register the channel, and the public endpoints at which WhatsApp delivers its webhooks."""
    webhooks = WebhookRegistry()

    def open_channel(config: ChannelConfig) -> Channel:
        from clew.features.whatsapp.channel import open_whatsapp_channel  # noqa: PLC0415  (declared by every command, needed by few)

        return open_whatsapp_channel(config, webhooks)

    def make_endpoint() -> object:
        from clew.features.whatsapp import endpoint  # noqa: PLC0415  (only servers need it)

        return endpoint.make_endpoint(webhooks)

    def make_handshake() -> object:
        from clew.features.whatsapp import endpoint  # noqa: PLC0415  (only servers need it)

        return endpoint.make_handshake(webhooks)

    registry.add_channel("whatsapp", open_channel)
    registry.add_operation("whatsapp", make_endpoint)
    registry.add_operation("whatsapp.handshake", make_handshake)
