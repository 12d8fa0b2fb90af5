"""A fake Mattermost: the published WebSocket and REST API, on loopback, with failures."""

from __future__ import annotations

from clew.testing.mattermost.server import FakeMattermost
from clew.testing.mattermost.state import MattermostPost

__all__ = ["FakeMattermost", "MattermostPost"]
