"""A fake Slack: the published Socket Mode and Web API, on loopback, with failures."""

from __future__ import annotations

from clew.testing.slack.server import FakeSlack
from clew.testing.slack.state import SlackMessage

__all__ = ["FakeSlack", "SlackMessage"]
