"""MCP over standard input and output: over the running server, or over an engine of its own."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from clew.api.mcp.frames import serve_frames
from clew.api.mcp.front import build_server
from clew.api.mcp.operation_client import InProcessClient, MethodCatalog
from clew.api.mcp.tools import McpAccess
from clew.cli.gateway import run_until_signalled
from clew.cli.gateway_client import GatewayClient, is_server_running
from clew.cli.logs import logs_to_file
from clew.cli.stdio_transport import StdioClosed, StdioTransport
from clew.cli.stdout_guard import reserve_stdout
from clew.config import ensure_home

if TYPE_CHECKING:
    from clew.api.mcp.operation_client import OperationClient
    from clew.config import Settings


def run_mcp_stdio(settings: Settings, scope: str) -> None:
    """
    Serve the client on standard input and output until it closes its end.

    :raises ClewError: if that is not possible
    """
    ensure_home(settings)
    with logs_to_file(settings):
        asyncio.run(run_until_signalled(lambda: _serve_client(settings, McpAccess.parse(scope))))


async def _serve_client(settings: Settings, access: McpAccess) -> None:
    pipe = StdioTransport()

    async def send_frame(frame: str) -> None:
        try:
            await pipe.send(frame)
        except StdioClosed:
            return  # its input will end, too

    async with AsyncExitStack() as stack:
        # The transport has duplicates; code that runs in this process must not consume its frames.
        stack.enter_context(reserve_stdout(stdin=True))
        client = await _open_client(settings, stack)
        await serve_frames(
            build_server(client, MethodCatalog(), access), pipe.iter_frames(), send_frame
        )


async def _open_client(settings: Settings, stack: AsyncExitStack) -> OperationClient:
    """Return a client of the running server, or of an engine of this process if there is none."""
    if await is_server_running(settings):
        return await stack.enter_async_context(GatewayClient.connected(settings))
    from clew.api.operation_context import OperationContext  # noqa: PLC0415  (not beside a server)
    from clew.runtime import open_application  # noqa: PLC0415

    product = await stack.enter_async_context(open_application(settings, role="mcp", own_only=True))
    context = OperationContext(
        operations=product.build_operations(),
        engine=product.engine,
        settings=settings,
        commands=product.commands,
    )
    return InProcessClient(context, asyncio.Event())
