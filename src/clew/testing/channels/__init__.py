"""Test support for channels: contract suite, in-memory platform, fake timer."""

from __future__ import annotations

from clew.testing.channels.contract import ChannelContract, ChannelPlatform, ShownMessage
from clew.testing.channels.memory import MemoryChannel, MemoryPlatform
from clew.testing.channels.timer import FakeTimer

__all__ = [
    "ChannelContract",
    "ChannelPlatform",
    "FakeTimer",
    "MemoryChannel",
    "MemoryPlatform",
    "ShownMessage",
]
