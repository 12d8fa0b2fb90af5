"""Serving the API over HTTP until told to stop."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING

import structlog
import uvicorn

from clew.api.app import Leaving, create_app
from clew.api.connections import Connection
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from starlette.applications import Starlette

    from clew.config import Settings
    from clew.engine.engine import Engine

log = structlog.get_logger(__name__)

#: Seconds in which turns may still end after the server was told to stop.
GRACE = 3.0
#: Seconds for answers that are being sent after that.
FLUSH = 2
#: Seconds for which an idle connection is kept.
KEEP_ALIVE = 30
#: Connections that wait to be accepted.
BACKLOG = 2048


async def serve(
    engine: Engine,
    settings: Settings,
    *,
    on_ready: Callable[[str], None] | None = None,
    grace: float = GRACE,
) -> None:
    """
    Serve the API until cancelled, then stop in order.

    ``on_ready`` is called with the base URL once requests are accepted. Cancelled, it takes no new
    connections, ends endless streams, gives turns ``grace`` seconds, tells those who still wait
    that the answer will be in the conversation, and returns by raising ``CancelledError``.

    :raises SettingsError: if the address cannot be listened on, or is open to others without a
        token
    """
    settings.api.require_token_beyond_loopback()
    if settings.api.token is not None:
        settings.api.token.reveal()
    sockets = _listen(settings.api.host, settings.api.port)
    try:
        leaving = Leaving()
        app = create_app(engine, settings, leaving=leaving)
        server = _Server(app, _url(sockets[0]), on_ready, ceil(grace) + FLUSH)
        await _until_cancelled(server, sockets, leaving, grace)
    finally:
        _close(sockets)


async def _until_cancelled(
    server: _Server, sockets: list[socket.socket], leaving: Leaving, grace: float
) -> None:
    running = asyncio.create_task(server.serve(sockets), name="http")
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        leaving.soon.set()
        server.should_exit = True
        await asyncio.wait({running}, timeout=grace)
        leaving.now.set()
        await running
        raise


class _Server(uvicorn.Server):
    """uvicorn, leaving signals to the program that it is part of."""

    def __init__(
        self, app: Starlette, url: str, on_ready: Callable[[str], None] | None, patience: int
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE,
                timeout_graceful_shutdown=patience,
            )
        )
        self._url, self._on_ready = url, on_ready

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        log.info("api_ready", url=self._url)
        if self._on_ready is not None:
            self._on_ready(self._url)


def _listen(host: str, port: int) -> list[socket.socket]:
    """A listening socket for each address of the host: ``localhost`` has two."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise SettingsError(f"api.host {host!r} is no address: {error.strerror}") from error
    sockets: list[socket.socket] = []
    failed: OSError | None = None
    for family, name in dict.fromkeys((each[0], str(each[4][0])) for each in found):
        try:
            sockets.append(_bound(family, name, port))
        except OSError as error:
            failed = error
        if sockets and port == 0:
            # Another address could not be given the same free port.
            return sockets
    # A machine without IPv6 names ::1 all the same, so one address is enough.
    if failed is not None and (not sockets or failed.errno == errno.EADDRINUSE):
        _close(sockets)
        raise _cannot_listen(host, port, failed) from failed
    return sockets


def _bound(family: int, name: str, port: int) -> socket.socket:
    # asyncio sends small pieces at once only on sockets whose protocol is named.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((name, port))
        made.listen(BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def _close(sockets: list[socket.socket]) -> None:
    for each in sockets:
        each.close()


def _cannot_listen(host: str, port: int, error: OSError) -> SettingsError:
    if error.errno == errno.EADDRINUSE:
        return SettingsError(
            f"port {port} on {host} is in use by another program: stop it, or set api.port to "
            "another one"
        )
    return SettingsError(f"cannot listen on {host} port {port}: {error.strerror}")


def _url(listening: socket.socket) -> str:
    name, port = listening.getsockname()[:2]
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
