"""A fake of the program behind a webhook: posts events, receives answers."""

from __future__ import annotations

from clew.testing.webhook.server import FakeWebhook, WebhookMessage

__all__ = ["FakeWebhook", "WebhookMessage"]
