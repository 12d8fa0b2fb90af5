"""MCP over any transport of frames, such as the lines of a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, jsonrpc_message_adapter

from clew.wire.json import dump_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server.lowlevel import Server

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
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_receive, frames, received, send)
        tasks.start_soon(_send, sent, send)
        # It closes the stream that it writes to, and so ends the sender, at the end of the frames.
        await server.run(for_server, from_server, server.create_initialization_options())


async def _receive(
    frames: AsyncIterator[bytes],
    received: MemoryObjectSendStream[SessionMessage | Exception],
    send: Callable[[str], Awaitable[None]],
) -> None:
    async with received:
        async for frame in frames:
            if (message := _parse_message(frame)) is None:
                await send(_NO_MESSAGE)
            else:
                await received.send(message)


def _parse_message(frame: bytes) -> SessionMessage | None:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(frame, by_name=False))
    except ValueError:
        return None


async def _send(
    sent: MemoryObjectReceiveStream[SessionMessage], send: Callable[[str], Awaitable[None]]
) -> None:
    async with sent:
        async for one in sent:
            await send(one.message.model_dump_json(by_alias=True, exclude_unset=True))
