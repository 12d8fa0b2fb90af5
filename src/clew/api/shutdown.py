"""Shutdown signals of a server."""

from __future__ import annotations

import asyncio
from dataclasses import field

from clew.record import Record


class ShutdownSignals(Record, kw_only=False):
    """The two stages of a server's shutdown."""

    #: Set when endless streams must end.
    drain: asyncio.Event = field(default_factory=asyncio.Event)
    #: Set when no request may wait for a turn any more.
    stop: asyncio.Event = field(default_factory=asyncio.Event)
