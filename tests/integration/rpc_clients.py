"""Clients of the protocol at a real server: the product's own, over each transport."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from clew.api.builtin_operations import BUILTIN_OPERATIONS
from clew.api.operation_context import OperationContext
from clew.api.rpc.connection import serve_client
from clew.tui.client import Resumed, RpcClient
from clew.tui.transports import in_process, websocket
from tests.integration.api_server import TOKEN

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

    from clew.core.scope import Scope
    from clew.tui.client import EventSubscription
    from clew.tui.transports import Connect
    from clew.wire.event_models import AnyNotice

    Serve = Callable[[AsyncIterator[str], Callable[[str], Awaitable[None]]], Awaitable[None]]
    from tests.integration.api_server import Server


def socket_url(server: Server) -> str:
    return f"{server.url.replace('http', 'ws', 1)}/api/ws"


def over_socket(server: Server) -> Connect:
    return websocket(socket_url(server), token=TOKEN)


def over_pipe(server: Server, *, viewer: Scope | None = None) -> Connect:
    """A connection within the process, to the same dispatcher."""
    office = OperationContext(
        operations=BUILTIN_OPERATIONS,
        engine=server.engine,
        settings=server.settings,
        may_configure=True,
    )
    if viewer is not None:
        office = OperationContext(
            operations=BUILTIN_OPERATIONS,
            engine=server.engine,
            settings=server.settings,
            viewer=viewer,
        )
    return in_process(serve_over(office))


def serve_over(context: OperationContext) -> Serve:
    """The server's side of a connection within the process."""

    async def serve(frames: AsyncIterator[str], send: Callable[[str], Awaitable[None]]) -> None:
        await serve_client(context, frames, send)

    return serve


@asynccontextmanager
async def client(connect: Connect) -> AsyncGenerator[RpcClient]:
    async with RpcClient(connect) as found:
        yield found


async def until_told(events: EventSubscription, *kinds: str) -> None:
    """Let the events pass up to the first of some kinds."""
    async for notice in events:
        if not isinstance(notice, Resumed) and notice.type in kinds:
            return


async def until_closed(events: EventSubscription, turns: int = 1) -> list[AnyNotice]:
    """The events up to the end of a turn, or of several."""
    found: list[AnyNotice] = []
    async for notice in events:
        if isinstance(notice, Resumed):
            continue
        found.append(notice)
        turns -= notice.type == "turn_closed"
        if turns == 0:
            return found
    raise AssertionError(f"the events ended after {found}")
