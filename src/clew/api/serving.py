"""Serving the API over HTTP until told to stop."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING

import structlog
import uvicorn

from clew.api.connections import connection_with
from clew.api.listening import base_url, close, listen
from clew.api.pace import PACE, Pace
from clew.api.shutdown import Leaving
from clew.wire.framing import MAX_FRAME_BYTES

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Generator

    from starlette.types import ASGIApp

    from clew.config import Settings
    from clew.engine.engine import Engine

log = structlog.get_logger(__name__)

#: Seconds for answers that are being sent when the server's grace is over.
FLUSH = 2
#: Seconds for which an idle connection is kept.
KEEP_ALIVE = 30


async def serve(
    engine: Engine,
    settings: Settings,
    *,
    sockets: list[socket.socket] | None = None,
    on_ready: Callable[[str], None] | None = None,
    pace: Pace = PACE,
    name: str = "",
) -> None:
    """
    Serve the API until cancelled, then stop in order.

    ``sockets`` listen already, and are closed here. ``on_ready`` is called with the base URL once
    requests are accepted; ``name`` is as for ``create_app``.

    Cancelled, it takes no new connections, ends endless streams, gives turns a moment, tells those
    who still wait that the answer will be in the conversation, and raises ``CancelledError``.

    :raises SettingsError: if the address cannot be listened on, or is open to others without a
        token
    """
    if sockets is None:
        sockets = listen(settings.api)
    from clew.api.app import create_app  # noqa: PLC0415  (the engine: a second)

    leaving = Leaving()
    app = create_app(engine, settings, leaving=leaving, pace=pace, name=name)
    await serve_app(app, sockets, leaving=leaving, on_ready=on_ready, pace=pace)


async def serve_app(
    app: ASGIApp,
    sockets: list[socket.socket],
    *,
    leaving: Leaving,
    on_ready: Callable[[str], None] | None = None,
    pace: Pace = PACE,
) -> None:
    """Serve an application as ``serve`` does; it follows ``leaving``."""
    try:
        server = _Server(app, base_url(sockets[0]), on_ready, pace)
        await _until_cancelled(server, sockets, leaving, pace.grace)
    finally:
        close(sockets)


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
        self,
        app: ASGIApp,
        url: str,
        on_ready: Callable[[str], None] | None,
        pace: Pace,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=connection_with(pace),
                ws="websockets-sansio",
                ws_max_size=MAX_FRAME_BYTES,
                ws_per_message_deflate=False,
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE,
                timeout_graceful_shutdown=ceil(pace.grace) + FLUSH,
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
