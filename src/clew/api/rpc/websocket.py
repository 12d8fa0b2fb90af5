"""``WS /api/ws``: JSON-RPC over a WebSocket."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.websockets import WebSocketDisconnect, WebSocketState

from clew.api.auth import select_subprotocol
from clew.api.caller import get_caller, limit_context, wait_for_logout
from clew.api.idempotency import caller_id
from clew.api.rpc.connection import serve_client
from clew.api.rpc.subscriptions import ClientDisconnected
from clew.background import run_in_background
from clew.record import replace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.websockets import WebSocket

    from clew.api.operation_context import OperationContext

#: WebSocket close code: the server restarts.
CLOSE_SERVICE_RESTART = 1012
#: Ours: the login was revoked, or has expired.
CLOSE_LOGGED_OUT = 4401


class RpcWebSocketEndpoint:
    """The WebSocket endpoint."""

    def __init__(self, context: OperationContext, name: str) -> None:
        self._context, self._name = context, name

    async def serve_socket(self, socket: WebSocket) -> None:
        """Serve one client for the duration of its connection."""
        await socket.accept(
            subprotocol=select_subprotocol(socket),
            headers=[(b"x-clew-server", self._name.encode())],
        )
        office = replace(limit_context(self._context, socket.scope), caller=caller_id(socket))

        async def send_frame(frame: str) -> None:
            try:
                await socket.send_text(frame)
            except (WebSocketDisconnect, OSError, RuntimeError):
                raise ClientDisconnected from None

        watched = _close_when_logged_out(socket)
        async with run_in_background(watched, name="login"):
            await serve_client(office, _iter_frames(socket), send_frame)
        if socket.application_state is WebSocketState.CONNECTED:
            await _close_socket(socket)


async def _close_when_logged_out(socket: WebSocket) -> None:
    """Close the connection of a browser whose login was revoked or has expired."""
    caller = get_caller(socket.scope)
    if caller is None:
        return
    await wait_for_logout(caller)
    with suppress(WebSocketDisconnect, OSError, RuntimeError):
        await socket.close(CLOSE_LOGGED_OUT)


async def _iter_frames(socket: WebSocket) -> AsyncIterator[str | bytes]:
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


async def _close_socket(socket: WebSocket) -> None:
    try:
        await socket.close(CLOSE_SERVICE_RESTART)
    except (WebSocketDisconnect, OSError, RuntimeError):
        return  # the client closed first
