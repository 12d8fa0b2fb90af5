"""The official SDK's client at a server of ours."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.integration.api_server import TOKEN

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from starlette.types import ASGIApp


@asynccontextmanager
async def over_http(
    url: str,
    *,
    token: str = TOKEN,
    query: str = "?scope=operate",
    mode: str = "auto",
    app: ASGIApp | None = None,
) -> AsyncGenerator[Client]:
    """A client of ``/mcp``, of an ``app`` in this process if there is one."""
    bearer = {"Authorization": f"Bearer {token}"}
    transport = None if app is None else httpx2.ASGITransport(app=app)
    async with (
        httpx2.AsyncClient(headers=bearer, timeout=60, transport=transport) as http,
        Client(streamable_http_client(f"{url}/mcp{query}", http_client=http), mode=mode) as client,
    ):
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool returns; its text says the same."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert json.loads(read_text(result.content)) == result.structured_content
    return result.structured_content


async def fail(client: Client, tool: str, **arguments: Any) -> str:
    """Why a tool fails."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.content
    return read_text(result.content)


async def read_json(client: Client, uri: str) -> Any:
    """What a resource holds."""
    return json.loads(read_text((await client.read_resource(uri)).contents))


def read_text(contents: Sequence[Any]) -> str:
    (one,) = contents
    return one.text
