"""A fake Discord: the published gateway and REST API, on loopback, with failures."""

from __future__ import annotations

from clew.testing.discord.server import FakeDiscord
from clew.testing.discord.state import DiscordMessage

__all__ = ["DiscordMessage", "FakeDiscord"]
