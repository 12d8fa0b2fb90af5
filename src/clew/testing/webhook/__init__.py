"""A fake of the program behind a webhook: hands in what people say, takes what is answered."""

from __future__ import annotations

from clew.testing.webhook.server import FakeWebhook, Sent

__all__ = ["FakeWebhook", "Sent"]
