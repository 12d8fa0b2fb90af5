"""The proxy of commands at the level ``net``, for as long as the gateway runs."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import structlog

from clew.config.workspaces import PROXY_SOCKET, make_credentials, make_network_rules
from clew.file_locks import try_lock_descriptor
from clew.sandbox.network_proxy import NetworkProxy

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from clew.config.settings import Settings

log = structlog.get_logger(__name__)

#: Seconds between two looks whether the gateway that serves this home has ended.
_PERIOD: Final = 0.5
#: Hosts whose refusal is logged; names of hosts are endless.
_MOST_LOGGED: Final = 1000


async def serve_network(settings: Settings) -> None:
    """
    Serve the proxy until cancelled, once no other process of this home does.

    :raises SettingsError: if the settings cannot be used
    """
    proxy = NetworkProxy(
        rules=make_network_rules(settings),
        credentials=make_credentials(settings),
        on_refused=_RefusalLog().add_refusal,
    )
    socket = settings.home.resolve() / PROXY_SOCKET
    async with _hold_lock(socket.with_suffix(".lock")), proxy.serve(socket):
        await asyncio.Event().wait()


@asynccontextmanager
async def _hold_lock(path: Path) -> AsyncGenerator[None]:
    """Hold a lock that ends with the process: one of them has the socket."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Nothing tells the end of another process.
        while not try_lock_descriptor(descriptor):  # noqa: ASYNC110
            await asyncio.sleep(_PERIOD)
        yield
    finally:
        os.close(descriptor)


class _RefusalLog:
    """A log of refused hosts, each of them once."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def add_refusal(self, host: str, reason: str) -> None:
        if host not in self._known and len(self._known) < _MOST_LOGGED:
            self._known.add(host)
            log.warning("network_refused", host=host, reason=reason)
