"""MCP over any transport of frames, such as the lines of a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from clew.wire.json import dump_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server.lowlevel import Server
    from mcp_types import JSONRPCMessage

#: Seconds for answers to what a client has sent before it closed its end.
_LAST_ANSWERS: Final = 60.0
_NO_MESSAGE: Final = dump_json(
    {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": PARSE_ERROR, "message": "this is no message of JSON-RPC"},
    }
)


async def serve_frames(
    server: Server[Any],
    frames: AsyncIterator[bytes],
    send: Callable[[str], Awaitable[None]],
) -> None:
    """Serve one client until its frames end; what it has sent last is still answered."""
    received, for_server = anyio.create_memory_object_stream[SessionMessage | Exception]()
    from_server, sent = anyio.create_memory_object_stream[SessionMessage]()
    waiting = _Waiting()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_receive, frames, received, send, waiting)
        tasks.start_soon(_send, sent, send, waiting)
        # It closes the stream that it writes to, and so ends the sender, at the end of the frames.
        await server.run(for_server, from_server, server.create_initialization_options())


class _Waiting:
    """Requests that are not answered yet: the server drops them when its input ends."""

    def __init__(self) -> None:
        self._ids: set[int | str] = set()
        self._is_empty = anyio.Event()

    def add(self, message: JSONRPCMessage) -> None:
        """Take note of a request."""
        if isinstance(message, JSONRPCRequest):
            self._ids.add(message.id)
            self._is_empty = anyio.Event()

    def discard(self, message: JSONRPCMessage) -> None:
        """Take note of an answer."""
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._ids.discard(message.id)
            if not self._ids:
                self._is_empty.set()

    async def wait(self) -> None:
        """Wait until all are answered, but not for ever."""
        with anyio.move_on_after(_LAST_ANSWERS):
            while self._ids:
                await self._is_empty.wait()


async def _receive(
    frames: AsyncIterator[bytes],
    received: MemoryObjectSendStream[SessionMessage | Exception],
    send: Callable[[str], Awaitable[None]],
    waiting: _Waiting,
) -> None:
    async with received:
        async for frame in frames:
            if (message := _parse_message(frame)) is None:
                await send(_NO_MESSAGE)
            else:
                waiting.add(message.message)
                await received.send(message)
        await waiting.wait()


def _parse_message(frame: bytes) -> SessionMessage | None:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(frame, by_name=False))
    except ValueError:
        return None


async def _send(
    sent: MemoryObjectReceiveStream[SessionMessage],
    send: Callable[[str], Awaitable[None]],
    waiting: _Waiting,
) -> None:
    async with sent:
        async for one in sent:
            waiting.discard(one.message)
            await send(one.message.model_dump_json(by_alias=True, exclude_unset=True))
