"""A fake Discord: gateway and REST API as they are published, on loopback, with failures."""

from __future__ import annotations

from clew.testing.discord.server import FakeDiscord
from clew.testing.discord.world import Message

__all__ = ["FakeDiscord", "Message"]
