"""
Messages to the process manager that started this program: ready, alive, stopping.

systemd reads them from a datagram socket whose address is in the environment.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import MutableMapping

_MICROSECONDS = 1_000_000


class ServiceNotifier:
    """The way to the process manager; without one it says nothing."""

    def __init__(self, address: str | None, *, watchdog: float | None = None) -> None:
        self._address = address
        #: Seconds of silence after which the program is killed as hung.
        self._watchdog = watchdog

    @classmethod
    def take_from(cls, environ: MutableMapping[str, str]) -> Self:
        """Return the notifier of this process; take it from what its children inherit."""
        address = environ.pop("NOTIFY_SOCKET", None)
        limit = environ.pop("WATCHDOG_USEC", "")
        process = environ.pop("WATCHDOG_PID", str(os.getpid()))
        mine = limit.isdigit() and int(limit) > 0 and process == str(os.getpid())
        return cls(address, watchdog=int(limit) / _MICROSECONDS if mine else None)

    def report_ready(self, url: str) -> None:
        """Tell that requests are answered now."""
        self._send(f"READY=1\nSTATUS=Serving at {url}")

    def report_stopping(self) -> None:
        """Tell that the program ends on purpose."""
        self._send("STOPPING=1\nSTATUS=Stopping")

    async def keep_watchdog(self) -> None:
        """Tell again and again that the event loop turns; never returns."""
        if self._address is None or self._watchdog is None:
            return
        while True:
            self._send("WATCHDOG=1")
            await asyncio.sleep(self._watchdog / 3)

    def _send(self, message: str) -> None:
        if self._address is None:
            return
        # A name that begins with @ is one of the abstract namespace, which has no file.
        address = self._address.replace("@", "\0", 1) if self._address[0] == "@" else self._address
        with (
            suppress(OSError),  # the manager is gone, or its queue is full: the next one arrives
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel,
        ):
            channel.setblocking(False)
            channel.sendto(message.encode(), address)
