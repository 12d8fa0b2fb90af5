"""A fake Telegram: the Bot API as it is published, on loopback, with its failures."""

from __future__ import annotations

from clew.testing.telegram.faults import Faults
from clew.testing.telegram.server import FakeTelegram
from clew.testing.telegram.world import Call, Message, Sent

__all__ = ["Call", "FakeTelegram", "Faults", "Message", "Sent"]
