"""One client of the server, whatever it is connected through: frames in, frames out."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from clew.api.rpc.dispatch import carry_out, waits_in_line
from clew.api.rpc.office import Call, Client, Lane
from clew.api.rpc.subscriptions import ClientGone
from clew.wire import framing
from clew.wire.errors import ErrorCode, RpcError
from clew.wire.framing import FrameError, RpcErrorResponse, RpcRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from clew.api.rpc.office import Office

#: Requests of one client that may be unanswered.
MOST = 64


async def serve_client(
    office: Office,
    frames: AsyncIterator[str | bytes],
    send: Callable[[str], Awaitable[None]],
    *,
    patience: float = 0,
) -> None:
    """
    Serve a client until its frames end; what was not answered ``patience`` seconds later is left.

    ``send`` waits while the client does not read, and raises ``ClientGone`` when it has gone.
    Cancelling is safe: what was stored stays.
    """
    peer = _Peer(office, send)
    await peer.run(frames, patience)


class _Peer:
    def __init__(self, office: Office, send: Callable[[str], Awaitable[None]]) -> None:
        self._write = send
        self._sending = asyncio.Lock()
        self._client = Client(office=office, send=self._send)
        self._lane = Lane()
        self._open: set[asyncio.Task[None]] = set()

    async def run(self, frames: AsyncIterator[str | bytes], patience: float) -> None:
        try:
            async with self._client.tasks:
                await self._take_all(frames)
                if self._open and patience:
                    await asyncio.wait(self._open, timeout=patience)
                for task in (*self._open, *self._client.subscriptions.values()):
                    task.cancel()
        finally:
            await self._client.gone()

    async def _take_all(self, frames: AsyncIterator[str | bytes]) -> None:
        with suppress(ClientGone):
            async for frame in frames:
                await self._take(frame)

    async def _send(self, frame: str) -> None:
        # One frame at a time: each is sent whole.
        async with self._sending:
            await self._write(frame)

    async def _take(self, frame: str | bytes) -> None:
        try:
            message = framing.parse_frame(frame)
        except FrameError as error:
            await self._send(framing.write_message(error.failure))
            return
        if not isinstance(message, RpcRequest):
            return  # nothing was asked of the client
        if len(self._open) >= MOST:
            await self._send(
                framing.write_message(
                    RpcErrorResponse(id=message.id, error=RpcError.from_code(ErrorCode.BUSY))
                )
            )
            return
        task = self._client.tasks.create_task(self._answer(message), name=f"rpc:{message.method}")
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _answer(self, request: RpcRequest) -> None:
        leave = await self._lane.enter() if waits_in_line(request.method) else _nothing
        call = Call(client=self._client, let_pass=leave)
        with suppress(ClientGone):
            try:
                answer = await carry_out(request, call)
                if answer is not None:
                    await self._send(framing.write_message(answer))
                for each in call.then:
                    each()
            finally:
                leave()


def _nothing() -> None:
    """Who is in no line keeps nobody waiting."""
