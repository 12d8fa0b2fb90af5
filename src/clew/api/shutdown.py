"""How far a server's end has come."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Leaving:
    """How far the server's end has come."""

    #: Streams without an end of their own end now.
    soon: asyncio.Event = field(default_factory=asyncio.Event)
    #: Nobody waits for a turn any more.
    now: asyncio.Event = field(default_factory=asyncio.Event)
