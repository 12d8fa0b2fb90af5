"""Transports of the protocol: WebSocket, pipes to a child process, and in-process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from typing import TYPE_CHECKING, Protocol

from clew.background import kill_and_wait, start_child
from clew.wire.framing import MAX_FRAME_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Sequence

    from websockets.asyncio.client import ClientConnection
    from websockets.exceptions import InvalidStatus

#: Frames that wait between the two ends of an in-process connection.
_MAX_QUEUED_FRAMES = 1000


class ConnectionLost(Exception):
    """The connection is closed, or could not be opened."""


class ServerSilent(ConnectionLost):
    """The server does not answer in time: it may be starting, or hang."""


class ConnectionRefused(Exception):
    """
    The server refuses this client, and a retry is useless; the message says why.

    ``other``: it is a different server from the one that was meant.
    """

    def __init__(self, message: str, *, other: bool = False) -> None:
        super().__init__(message)
        self.other = other


class FrameConnection(Protocol):
    """Bidirectional connection for frames."""

    async def send(self, frame: str) -> None:
        """
        Send a frame.

        :raises ConnectionLost: if the connection is closed
        """
        ...

    async def receive(self) -> str | bytes:
        """
        Return the next frame. Cancelling is safe.

        :raises ConnectionLost: if the connection is closed
        """
        ...


#: Opens and closes a connection; raises ``ConnectionLost`` or ``ConnectionRefused``.
Connect = Callable[[], AbstractAsyncContextManager[FrameConnection]]
#: Serves one client: receives its frames and a function that sends it one.
Serve = Callable[[AsyncIterator[str], Callable[[str], Awaitable[None]]], Awaitable[None]]


def websocket(
    url: str, *, token: str | None = None, server: str | None = None, timeout: float = 10.0
) -> Connect:
    """
    Return a connector to ``ws://HOST:PORT/api/ws``, which waits ``timeout`` seconds for it.

    With ``server``, only a server of this name is accepted: another program, or a server of
    other conversations, may have taken over the port.
    """
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    @asynccontextmanager
    async def open_socket() -> AsyncGenerator[FrameConnection]:
        # A tenth of the import time before the first paint.
        from websockets.asyncio.client import connect  # noqa: PLC0415
        from websockets.exceptions import InvalidHandshake, InvalidStatus  # noqa: PLC0415

        try:
            socket = await connect(
                url,
                additional_headers=headers,
                compression=None,
                max_size=MAX_FRAME_BYTES,
                proxy=None,
                open_timeout=timeout,
                close_timeout=1,
            )
        except InvalidStatus as error:
            raise _error_from_status(error) from error
        except TimeoutError as error:
            raise ServerSilent(f"{url} does not answer: it may be starting") from error
        except (OSError, InvalidHandshake) as error:
            raise ConnectionLost(f"{url} cannot be reached: {error}") from error
        async with socket:
            if server is not None and _server_name(socket) != server:
                raise ConnectionRefused(f"{url} is served by another program now", other=True)
            yield _SocketConnection(socket)

    return open_socket


def _server_name(socket: ClientConnection) -> str | None:
    return None if socket.response is None else socket.response.headers.get("x-clew-server")


def _error_from_status(error: InvalidStatus) -> ConnectionRefused | ConnectionLost:
    status = error.response.status_code
    body = bytes(error.response.body or b"").decode("utf-8", "replace")
    if status in (401, 403):
        return ConnectionRefused(f"the server refuses this client ({status}): {body}")
    return ConnectionLost(f"the server answered {status}")


class _SocketConnection:
    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, frame: str) -> None:
        with _translate_closed():
            await self._socket.send(frame)

    async def receive(self) -> str | bytes:
        with _translate_closed():
            return await self._socket.recv()


@contextmanager
def _translate_closed() -> Generator[None]:
    from websockets.exceptions import ConnectionClosed  # noqa: PLC0415  (loaded with the socket)

    try:
        yield
    except ConnectionClosed as error:
        raise ConnectionLost(str(error)) from error


def pipes(command: Sequence[str]) -> Connect:
    """Return a connector to a child process such as ``["clew", "rpc"]``; shares stderr."""

    @asynccontextmanager
    async def open_pipes() -> AsyncGenerator[FrameConnection]:
        child = await start_child(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=MAX_FRAME_BYTES + 1024,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            yield _PipeConnection(child.stdout, child.stdin)
        finally:
            child.stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await child.wait()
            await kill_and_wait(child)

    return open_pipes


class _PipeConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, frame: str) -> None:
        try:
            self._writer.write(f"{frame}\n".encode())
            await self._writer.drain()
        except OSError as error:
            raise ConnectionLost("the process has stopped") from error

    async def receive(self) -> str | bytes:
        try:
            line = await self._reader.readline()
        except (OSError, ValueError) as error:
            raise ConnectionLost(str(error)) from error
        if not line.endswith(b"\n"):
            raise ConnectionLost("the process has stopped")
        return line


def in_process(serve: Serve) -> Connect:
    """Return a connector to a server in this process and event loop."""

    @asynccontextmanager
    async def open_queues() -> AsyncGenerator[FrameConnection]:
        ends = _QueueConnection()
        task = asyncio.create_task(ends.run_server(serve), name="rpc-in-process")
        try:
            yield ends
        finally:
            ends.close()
            # It ends by itself at the end of its input.
            await asyncio.wait({task})
            if not task.cancelled() and (error := task.exception()):
                raise error

    return open_queues


class _QueueConnection:
    """Both ends of an in-process connection."""

    def __init__(self) -> None:
        self._to_server: asyncio.Queue[str | None] = asyncio.Queue()
        self._to_client: asyncio.Queue[str | None] = asyncio.Queue(_MAX_QUEUED_FRAMES)
        self._closed = asyncio.Event()

    async def send(self, frame: str) -> None:
        self._to_server.put_nowait(frame)

    async def receive(self) -> str:
        frame = await self._to_client.get()
        if frame is None:
            self._to_client.put_nowait(None)
            raise ConnectionLost("the server has stopped")
        return frame

    def close(self) -> None:
        self._to_server.put_nowait(None)
        self._closed.set()
        # A blocked sender continues and sees that the connection is closed.
        while not self._to_client.empty():
            self._to_client.get_nowait()

    async def run_server(self, serve: Serve) -> None:
        try:
            await serve(self._iter_frames(), self._send_to_client)
        finally:
            while self._to_client.full():
                self._to_client.get_nowait()
            self._to_client.put_nowait(None)

    async def _iter_frames(self) -> AsyncIterator[str]:
        while (frame := await self._to_server.get()) is not None:
            yield frame

    async def _send_to_client(self, frame: str) -> None:
        if not self._closed.is_set():
            await self._to_client.put(frame)
