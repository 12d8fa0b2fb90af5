"""The HTTP transport of the SDK, for one request at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from clew.api.mcp.front import build_server
from clew.api.request_body import MAX_BODY_BYTES

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from starlette.types import Receive, Scope, Send

__all__ = ["answer_request", "build_server"]


async def answer_request(server: Server[Any], scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request; the caller, its host and its origin were checked before."""
    manager = StreamableHTTPSessionManager(
        server, stateless=True, max_request_body_size=MAX_BODY_BYTES
    )
    async with manager.run():
        await manager.handle_request(scope, receive, send)
