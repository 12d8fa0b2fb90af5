"""``POST /mcp``: MCP over HTTP, each request by itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import Request

from clew.api.auth import bearer_token
from clew.api.mcp.operation_client import InProcessClient, MethodCatalog
from clew.api.mcp.tools import McpAccess
from clew.api.request_body import read_body
from clew.record import replace

if TYPE_CHECKING:
    from types import ModuleType

    from starlette.types import Message, Receive, Scope, Send

    from clew.api.http_call import HttpServer


class McpEndpoint:
    """
    The endpoint.

    It keeps no sessions: any gateway of a store answers any request, also after a restart.
    The SDK is imported for the first request, beside the event loop.
    """

    def __init__(self, server: HttpServer) -> None:
        self._server, self._catalog = server, MethodCatalog()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            raise HTTPException(405, headers={"Allow": "POST"})
        request = Request(scope, receive)
        access = McpAccess.parse(request.query_params.get("scope", "talk"))
        body = await read_body(request, patience=self._server.timeouts.body)
        caller = (bearer_token(request) or b"").decode("latin-1")
        context = replace(self._server.context, caller=caller)
        client = InProcessClient(context, self._server.leaving.stop)
        sdk = await asyncio.to_thread(_import_sdk)
        server = sdk.build_server(client, self._catalog, access)
        await sdk.answer_request(server, scope, _replay(body, receive), send)


def _import_sdk() -> ModuleType:
    from clew.api.mcp import streamable_http  # noqa: PLC0415  (most gateways have no MCP client)

    return streamable_http


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a function that receives a body which was read already, then what follows."""
    read: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return read.pop() if read else await receive()

    return receive_again
