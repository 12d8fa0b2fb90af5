"""A fake of signal-cli's daemon, on loopback, with failures."""

from __future__ import annotations

from clew.testing.signal.server import FakeSignal, SignalMessage

__all__ = ["FakeSignal", "SignalMessage"]
