"""Webhook channel: signed HTTP in and out, for platforms without a channel of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.plugin import Registry


def register(registry: Registry) -> None:
    """Register the feature."""
    registry.add_channel("webhook", "clew.features.webhooks.channel:open_channel")
