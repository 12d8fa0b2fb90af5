"""``WS /api/ws``: JSON-RPC over a WebSocket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.websockets import WebSocketDisconnect, WebSocketState

from clew.api.guard import bearer, spoken
from clew.api.rpc.office import Office
from clew.api.rpc.peer import serve_client
from clew.api.rpc.subscriptions import ClientGone

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.websockets import WebSocket

    from clew.config import Settings
    from clew.engine.engine import Engine

#: The server stops, and will be back.
RESTARTS = 1012


class Socket:
    """The endpoint."""

    def __init__(self, engine: Engine, settings: Settings, name: str) -> None:
        self._engine, self._settings, self._name = engine, settings, name

    async def serve(self, socket: WebSocket) -> None:
        """One client, from its connecting to its going."""
        await socket.accept(
            subprotocol=spoken(socket), headers=[(b"x-clew-server", self._name.encode())]
        )
        office = Office(
            engine=self._engine,
            settings=self._settings,
            caller=(bearer(socket) or b"").decode("latin-1"),
            may_configure=self._settings.api.token is not None,
        )

        async def send(frame: str) -> None:
            try:
                await socket.send_text(frame)
            except (WebSocketDisconnect, OSError, RuntimeError):
                raise ClientGone from None

        await serve_client(office, _frames(socket), send)
        if socket.application_state is WebSocketState.CONNECTED:
            await _close(socket)


async def _frames(socket: WebSocket) -> AsyncIterator[str | bytes]:
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
        text: str | None = message.get("text")
        if text is None:
            raw: bytes = message["bytes"]
            yield raw
        else:
            yield text


async def _close(socket: WebSocket) -> None:
    try:
        await socket.close(RESTARTS)
    except (WebSocketDisconnect, OSError, RuntimeError):
        return  # it was faster
