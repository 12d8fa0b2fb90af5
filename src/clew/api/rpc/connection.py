"""One client connection over any transport: frames in, frames out."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from clew.api.operation_call import release_nothing
from clew.api.rpc.client import ConnectedClient, RequestOrder, RpcCall
from clew.api.rpc.dispatch import dispatch_request
from clew.api.rpc.subscriptions import ClientDisconnected
from clew.wire import framing
from clew.wire.errors import ErrorCode, RpcError
from clew.wire.framing import FrameError, RpcErrorResponse, RpcRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from clew.api.operation_context import OperationContext

#: The limit of unanswered requests of one client.
MAX_OPEN_REQUESTS = 64
#: Seconds that the changes which a client requested get after it has disconnected.
_STORE_TIMEOUT = 5.0


async def serve_client(
    office: OperationContext,
    frames: AsyncIterator[str | bytes],
    send: Callable[[str], Awaitable[None]],
    *,
    patience: float = 0,
) -> None:
    """
    Serve a client until its frames end; requests then get ``patience`` more seconds.

    ``send`` blocks while the client does not read, and raises ``ClientDisconnected`` when
    it has disconnected. Cancelling is safe: what was stored stays.
    """
    peer = _RpcConnection(office, send)
    await peer.run(frames, patience)


class _RpcConnection:
    def __init__(self, office: OperationContext, send: Callable[[str], Awaitable[None]]) -> None:
        self._write = send
        self._sending = asyncio.Lock()
        self._client = ConnectedClient(context=office, send=self._send_frame)
        self._order = RequestOrder()
        self._open: set[asyncio.Task[None]] = set()

    async def run(self, frames: AsyncIterator[str | bytes], patience: float) -> None:
        try:
            async with self._client.tasks:
                await self._receive_frames(frames)
                await self._store_requested()
                if self._open and patience:
                    await asyncio.wait(self._open, timeout=patience)
                for task in (*self._open, *self._client.subscriptions.values()):
                    task.cancel()
        finally:
            await self._client.disconnect()

    async def _receive_frames(self, frames: AsyncIterator[str | bytes]) -> None:
        with suppress(ClientDisconnected):
            async for frame in frames:
                await self._receive_frame(frame)

    async def _store_requested(self) -> None:
        # A program that ends sends its last change, a close, and may not wait for the answer.
        await asyncio.sleep(0)  # requests that were just read take their places first
        with suppress(TimeoutError):
            async with asyncio.timeout(_STORE_TIMEOUT):
                leave = await self._order.acquire()
            leave()

    async def _send_frame(self, frame: str) -> None:
        # One frame at a time, so that frames do not interleave.
        async with self._sending:
            await self._write(frame)

    async def _receive_frame(self, frame: str | bytes) -> None:
        try:
            message = framing.parse_frame(frame)
        except FrameError as error:
            await self._send_frame(framing.write_message(error.failure))
            return
        if not isinstance(message, RpcRequest):
            return  # the server sends no requests to clients
        if len(self._open) >= MAX_OPEN_REQUESTS:
            await self._send_frame(
                framing.write_message(
                    RpcErrorResponse(id=message.id, error=RpcError.from_code(ErrorCode.BUSY))
                )
            )
            return
        task = self._client.tasks.create_task(
            self._process_request(message), name=f"rpc:{message.method}"
        )
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _process_request(self, request: RpcRequest) -> None:
        operation = self._client.context.operations.get(request.method)
        is_ordered = operation is not None and operation.is_ordered
        leave = await self._order.acquire() if is_ordered else release_nothing
        call = RpcCall(context=self._client.context, client=self._client, release_order=leave)
        with suppress(ClientDisconnected):
            try:
                answer = await dispatch_request(request, call)
                if answer is not None:
                    await self._send_frame(framing.write_message(answer))
                for each in call.after_response:
                    each()
            finally:
                leave()
