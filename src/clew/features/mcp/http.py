"""A server at an address: streamable HTTP."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from clew.features.mcp.settings import McpServer

#: Seconds to connect, and for a part of an answer: calls have their own limit.
_TIMEOUT: Final = httpx2.Timeout(30.0, read=600.0)


@asynccontextmanager
async def open_http(server: McpServer, auth: httpx2.Auth | None = None) -> AsyncGenerator[Any]:
    """Open the streams of messages to a server at an address."""
    headers = {name: secret.reveal() for name, secret in (server.headers or {}).items()}
    assert server.url is not None
    async with (
        httpx2.AsyncClient(headers=headers, timeout=_TIMEOUT, auth=auth) as client,
        streamable_http_client(server.url, http_client=client) as streams,
    ):
        yield streams
