"""JSON-RPC over standard input and output: proxied to the running server, or served here."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

from clew.background import cancel_and_wait
from clew.cli.gateway import run_until_signalled
from clew.cli.logs import logs_to_file
from clew.cli.server_connection import connect_to_server
from clew.cli.stdio_transport import StdioClosed, StdioTransport
from clew.cli.stdout_guard import reserve_stdout
from clew.config import ensure_home
from clew.errors import ClewError, StoreUnavailable
from clew.tui.transports import ConnectionLost, ConnectionRefused, FrameConnection, ServerSilent
from clew.wire import framing

if TYPE_CHECKING:
    from clew.config import Settings

#: Seconds to wait for outstanding answers when the input ends.
_ANSWER_TIMEOUT = 10.0
#: The prefix of a frame that is an event, not an answer.
_EVENT_PREFIX = framing.write_event({}).partition(',"params"')[0]


def run_rpc_stdio(settings: Settings) -> None:
    """
    Serve the client on standard input and output until it closes its end.

    :raises ClewError: if that is not possible
    """
    ensure_home(settings)
    with logs_to_file(settings):
        asyncio.run(run_until_signalled(lambda: _serve_client(settings)))


async def _serve_client(settings: Settings) -> None:
    pipe = StdioTransport()
    async with AsyncExitStack() as stack:
        server = await wait_for_server(settings, stack)
        if server is None:
            await _serve_standalone(settings, pipe)
        else:
            await _proxy_frames(pipe, server)


async def wait_for_server(
    settings: Settings, stack: AsyncExitStack, *, patience: float = 10.0
) -> FrameConnection | None:
    """
    Return a connection to the running server, once it has started; ``None`` if there is none.

    :raises ClewError: if the server refuses this client
    """
    told = False
    while True:
        try:
            return await connect_to_server(settings, stack, patience=patience)
        except ServerSilent as error:
            if not told:
                told = True
                print(f"clew: {error}; waiting for it", file=sys.stderr, flush=True)
        except ConnectionRefused as error:
            raise ClewError("the server of this home requires its token") from error


class _PendingRequests:
    """Counter of the forwarded requests that are not answered yet."""

    def __init__(self) -> None:
        self._open = 0
        self.all_answered = asyncio.Event()
        self.all_answered.set()

    def count_request(self, frame: bytes) -> None:
        with suppress(framing.FrameError):  # an invalid frame gets an error response, too
            message = framing.parse_frame(frame)
            if not isinstance(message, framing.RpcRequest) or message.id is None:
                return
        self._open += 1
        self.all_answered.clear()

    def count_answer(self, frame: str) -> None:
        if frame.startswith(_EVENT_PREFIX):
            return
        self._open -= 1
        if self._open <= 0:
            self.all_answered.set()


async def _proxy_frames(pipe: StdioTransport, server: FrameConnection) -> None:
    """Forward frames both ways until the server ends, or the input ends and all is answered."""
    unanswered = _PendingRequests()
    back = asyncio.create_task(_forward_to_client(pipe, server, unanswered), name="rpc-back")
    there = asyncio.create_task(_forward_to_server(pipe, server, unanswered), name="rpc-there")
    done, open_ = await asyncio.wait({back, there}, return_when=asyncio.FIRST_COMPLETED)
    await cancel_and_wait(*open_)
    if back in done and back.result():
        raise StoreUnavailable(
            "the server has stopped: start clew rpc again, and subscribe after the last seq"
        )


async def _forward_to_server(
    pipe: StdioTransport, server: FrameConnection, unanswered: _PendingRequests
) -> None:
    with suppress(ConnectionLost, TimeoutError):
        async for frame in pipe.iter_frames():
            unanswered.count_request(frame)
            await server.send(frame.decode("utf-8", "replace"))
        await asyncio.wait_for(unanswered.all_answered.wait(), _ANSWER_TIMEOUT)


async def _forward_to_client(
    pipe: StdioTransport, server: FrameConnection, unanswered: _PendingRequests
) -> bool:
    """Forward the server's frames; return ``True`` if the server closed the connection."""
    try:
        while True:
            received = await server.receive()
            frame = received if isinstance(received, str) else received.decode()
            await pipe.send(frame)
            unanswered.count_answer(frame)
    except ConnectionLost:
        return True
    except StdioClosed:
        return False


async def _serve_standalone(settings: Settings, pipe: StdioTransport) -> None:
    from clew.api.operation_context import OperationContext  # noqa: PLC0415  (not to hand frames on)
    from clew.api.rpc.connection import serve_client  # noqa: PLC0415
    from clew.api.rpc.subscriptions import ClientDisconnected  # noqa: PLC0415
    from clew.runtime import open_application  # noqa: PLC0415

    async def send_frame(frame: str) -> None:
        try:
            await pipe.send(frame)
        except StdioClosed:
            raise ClientDisconnected from None

    async with AsyncExitStack() as stack:
        # The transport has duplicates; code that runs in this process must not consume its frames.
        stack.enter_context(reserve_stdout(stdin=True))
        product = await stack.enter_async_context(
            open_application(settings, role="rpc", own_only=True)
        )
        office = OperationContext(
            operations=product.build_operations(),
            engine=product.engine,
            settings=settings,
            commands=product.commands,
            may_configure=True,
        )
        await serve_client(office, pipe.iter_frames(), send_frame, patience=_ANSWER_TIMEOUT)
