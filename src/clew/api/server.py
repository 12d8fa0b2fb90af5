"""HTTP server of the API."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING

import structlog
import uvicorn

from clew.api.http_protocol import protocol_with_timeouts
from clew.api.shutdown import ShutdownSignals
from clew.api.sockets import base_url, bind_sockets, close_sockets
from clew.api.timeouts import DEFAULT_TIMEOUTS, ApiTimeouts
from clew.background import shield_until_done
from clew.wire.framing import MAX_FRAME_BYTES

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Generator

    from starlette.types import ASGIApp

    from clew.config import Settings
    from clew.engine.engine import Engine

log = structlog.get_logger(__name__)

#: Seconds to finish sending responses after the grace period.
FLUSH_SECONDS = 2
#: Seconds for which an idle connection is kept open.
KEEP_ALIVE_SECONDS = 30


async def serve_api(
    engine: Engine,
    settings: Settings,
    *,
    sockets: list[socket.socket] | None = None,
    on_ready: Callable[[str], None] | None = None,
    pace: ApiTimeouts = DEFAULT_TIMEOUTS,
    name: str = "",
) -> None:
    """
    Serve the API until cancelled, then shut down gracefully.

    ``sockets`` are listening already, and are closed here. ``on_ready`` is called with the
    base URL once requests are accepted; ``name`` is as for ``create_app``.

    Cancelled, it accepts no more connections, ends endless streams, gives turns a moment,
    tells clients that still wait that the answer will be in the conversation, and raises
    ``CancelledError``.

    :raises SettingsError: if the address cannot be listened on, or is open to others
        without a token
    """
    if sockets is None:
        sockets = bind_sockets(settings.api)
    from clew.api.app import create_app  # noqa: PLC0415  (the engine: a second)

    leaving = ShutdownSignals()
    app = create_app(engine, settings, leaving=leaving, pace=pace, name=name)
    await serve_app(app, sockets, leaving=leaving, on_ready=on_ready, pace=pace)


async def serve_app(
    app: ASGIApp,
    sockets: list[socket.socket],
    *,
    leaving: ShutdownSignals,
    on_ready: Callable[[str], None] | None = None,
    pace: ApiTimeouts = DEFAULT_TIMEOUTS,
) -> None:
    """Serve an application as ``serve_api`` does; it follows the ``leaving`` signals."""
    try:
        server = _EmbeddedServer(app, base_url(sockets[0]), on_ready, pace)
        await _run_until_cancelled(server, sockets, leaving, pace.shutdown_grace)
    finally:
        close_sockets(sockets)


async def _run_until_cancelled(
    server: _EmbeddedServer, sockets: list[socket.socket], leaving: ShutdownSignals, grace: float
) -> None:
    running = asyncio.create_task(server.serve(sockets), name="http")
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        leaving.drain.set()
        server.should_exit = True
        await shield_until_done(_stop_after(running, leaving, grace))
        raise


async def _stop_after(running: asyncio.Task[None], leaving: ShutdownSignals, grace: float) -> None:
    await asyncio.wait({running}, timeout=grace)
    leaving.stop.set()
    await running


class _EmbeddedServer(uvicorn.Server):
    """A uvicorn server that leaves signal handling to its program."""

    def __init__(
        self,
        app: ASGIApp,
        url: str,
        on_ready: Callable[[str], None] | None,
        pace: ApiTimeouts,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=protocol_with_timeouts(pace),
                ws="websockets-sansio",
                ws_max_size=MAX_FRAME_BYTES,
                ws_per_message_deflate=False,
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=ceil(pace.shutdown_grace) + FLUSH_SECONDS,
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
