"""A fake of WhatsApp's Cloud API and its webhooks, on loopback, with failures."""

from __future__ import annotations

from clew.testing.whatsapp.server import FakeWhatsApp
from clew.testing.whatsapp.state import WhatsAppMessage

__all__ = ["FakeWhatsApp", "WhatsAppMessage"]
