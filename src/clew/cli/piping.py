"""Standard input and output connected to the server that runs, or to an engine of their own."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

from clew.api.whereabouts import discover_server
from clew.cli.apart import stdout_apart
from clew.cli.gateway import until_told_to_stop
from clew.cli.logs import logs_to_file
from clew.cli.pipe import Pipe, PipeClosed
from clew.config import ensure_home
from clew.errors import ClewError, StoreUnavailable
from clew.tui.transports import Connection, ConnectionLost, Refused, websocket
from clew.wire import framing

if TYPE_CHECKING:
    from clew.config import Settings

#: Seconds for answers that are still to come when the input ends.
_PATIENCE = 10.0
#: How a frame begins that answers nothing.
_UNASKED = framing.write_event({}).partition(',"params"')[0]


def run(settings: Settings) -> None:
    """
    Serve whoever is at the other end of the pipe, until that ends.

    :raises ClewError: if that cannot be done
    """
    ensure_home(settings)
    with logs_to_file(settings):
        asyncio.run(until_told_to_stop(lambda: _serve(settings)))


async def _serve(settings: Settings) -> None:
    pipe = Pipe()
    async with AsyncExitStack() as stack:
        server = await _attached(settings, stack)
        if server is None:
            await _by_itself(settings, pipe)
        else:
            await _between(pipe, server)


async def _attached(settings: Settings, stack: AsyncExitStack) -> Connection | None:
    """A connection to the server that runs here; ``None`` if none does."""
    found = discover_server(settings.home)
    if found is None:
        return None
    token = None if settings.api.token is None else settings.api.token.reveal()
    connect = websocket(found.websocket_url, token=token, server=found.name)
    try:
        return await stack.enter_async_context(connect())
    except ConnectionLost:
        return None
    except Refused as error:
        if error.other:
            return None
        raise ClewError(f"the server at {found.url} lets nobody in without its token") from error


class _Unanswered:
    """How many of the frames that were handed on are still to be answered."""

    def __init__(self) -> None:
        self._open = 0
        self.none = asyncio.Event()
        self.none.set()

    def asked(self, frame: bytes) -> None:
        with suppress(framing.FrameError):  # which is answered, too
            message = framing.parse_frame(frame)
            if not isinstance(message, framing.RpcRequest) or message.id is None:
                return
        self._open += 1
        self.none.clear()

    def told(self, frame: str) -> None:
        if frame.startswith(_UNASKED):
            return
        self._open -= 1
        if self._open <= 0:
            self.none.set()


async def _between(pipe: Pipe, server: Connection) -> None:
    """Hand every frame on, both ways, until the server ends or all that came in is answered."""
    unanswered = _Unanswered()
    back = asyncio.create_task(_back(pipe, server, unanswered), name="rpc-back")
    there = asyncio.create_task(_there(pipe, server, unanswered), name="rpc-there")
    done, open_ = await asyncio.wait({back, there}, return_when=asyncio.FIRST_COMPLETED)
    for task in open_:
        task.cancel()
    await asyncio.wait({back, there})
    if back in done and back.result():
        raise StoreUnavailable(
            "the server has gone: start clew rpc again, and subscribe after the last seq"
        )


async def _there(pipe: Pipe, server: Connection, unanswered: _Unanswered) -> None:
    with suppress(ConnectionLost, TimeoutError):
        async for frame in pipe.frames():
            unanswered.asked(frame)
            await server.send(frame.decode("utf-8", "replace"))
        await asyncio.wait_for(unanswered.none.wait(), _PATIENCE)


async def _back(pipe: Pipe, server: Connection, unanswered: _Unanswered) -> bool:
    """Whether the server was the one that ended it."""
    try:
        while True:
            received = await server.receive()
            frame = received if isinstance(received, str) else received.decode()
            await pipe.send(frame)
            unanswered.told(frame)
    except ConnectionLost:
        return True
    except PipeClosed:
        return False


async def _by_itself(settings: Settings, pipe: Pipe) -> None:
    from clew.api.rpc.office import RpcContext  # noqa: PLC0415  (not to hand frames on)
    from clew.api.rpc.peer import serve_client  # noqa: PLC0415
    from clew.api.rpc.subscriptions import ClientDisconnected  # noqa: PLC0415
    from clew.runtime import open_application  # noqa: PLC0415

    async def send(frame: str) -> None:
        try:
            await pipe.send(frame)
        except PipeClosed:
            raise ClientDisconnected from None

    async with AsyncExitStack() as stack:
        # The pipe has ends of its own, and what this process runs must not take its frames.
        stack.enter_context(stdout_apart(stdin=True))
        product = await stack.enter_async_context(
            open_application(settings, role="rpc", own_only=True)
        )
        office = RpcContext(engine=product.engine, settings=settings, may_configure=True)
        await serve_client(office, pipe.frames(), send, patience=_PATIENCE)
