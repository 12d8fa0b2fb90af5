"""A fake Slack: socket mode and the web API as they are published, on loopback, with failures."""

from __future__ import annotations

from clew.testing.slack.server import FakeSlack
from clew.testing.slack.world import Message

__all__ = ["FakeSlack", "Message"]
