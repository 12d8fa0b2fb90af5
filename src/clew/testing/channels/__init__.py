"""What a channel is tested with: the contract suite, a platform in memory, a clock of one's own."""

from __future__ import annotations

from clew.testing.channels.contract import ChannelContract, Platform, Shown
from clew.testing.channels.memory import MemoryChannel, MemoryPlatform
from clew.testing.channels.timer import FakeTimer

__all__ = [
    "ChannelContract",
    "FakeTimer",
    "MemoryChannel",
    "MemoryPlatform",
    "Platform",
    "Shown",
]
