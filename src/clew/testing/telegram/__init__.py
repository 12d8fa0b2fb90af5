"""A fake Telegram: the published Bot API, on loopback, with failures."""

from __future__ import annotations

from clew.testing.faults import FaultInjector
from clew.testing.telegram.server import FakeTelegram
from clew.testing.telegram.state import ApiCall, SentMessage, TelegramMessage

__all__ = ["ApiCall", "FakeTelegram", "FaultInjector", "SentMessage", "TelegramMessage"]
