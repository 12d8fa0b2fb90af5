"""Transports of the protocol: WebSocket, pipes to a child process, and within this process."""

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

from clew.wire.framing import MAX_FRAME_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Sequence

    from websockets.asyncio.client import ClientConnection
    from websockets.exceptions import InvalidStatus

#: Frames that wait between the two ends within a process.
_MOST = 1000


class ConnectionLost(Exception):
    """The connection is over, or could not be made."""


class Refused(Exception):
    """
    The server does not let this client in: trying again is no use. The text says why.

    ``other``: it is another server than the one that was meant.
    """

    def __init__(self, message: str, *, other: bool = False) -> None:
        super().__init__(message)
        self.other = other


class Connection(Protocol):
    """Frames both ways."""

    async def send(self, frame: str) -> None:
        """:raises ConnectionLost: if the connection is over"""
        ...

    async def receive(self) -> str | bytes:
        """
        The next frame. Cancelling is safe.

        :raises ConnectionLost: if the connection is over
        """
        ...


#: Opens a connection and closes it; raises ``ConnectionLost`` or ``Refused`` where it cannot.
Connect = Callable[[], AbstractAsyncContextManager[Connection]]
#: Serves one client: the frames that it sends, and what sends it one.
Serve = Callable[[AsyncIterator[str], Callable[[str], Awaitable[None]]], Awaitable[None]]


def websocket(url: str, *, token: str | None = None, server: str | None = None) -> Connect:
    """
    Connections to ``ws://HOST:PORT/api/ws``.

    With ``server`` only the one that gives this as its name will do: another program, or a
    server of other conversations, may have got the port since.
    """
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    @asynccontextmanager
    async def opened() -> AsyncGenerator[Connection]:
        # A tenth of the imports that stand before a first picture.
        from websockets.asyncio.client import connect  # noqa: PLC0415
        from websockets.exceptions import InvalidHandshake, InvalidStatus  # noqa: PLC0415

        try:
            socket = await connect(
                url,
                additional_headers=headers,
                compression=None,
                max_size=MAX_FRAME_BYTES,
                proxy=None,
                close_timeout=1,
            )
        except InvalidStatus as error:
            raise _refused(error) from error
        except (OSError, InvalidHandshake, TimeoutError) as error:
            raise ConnectionLost(f"{url} cannot be reached: {error}") from error
        async with socket:
            if server is not None and _name(socket) != server:
                raise Refused(f"{url} is served by another program now", other=True)
            yield _Socket(socket)

    return opened


def _name(socket: ClientConnection) -> str | None:
    return None if socket.response is None else socket.response.headers.get("x-clew-server")


def _refused(error: InvalidStatus) -> Refused | ConnectionLost:
    status = error.response.status_code
    body = bytes(error.response.body or b"").decode("utf-8", "replace")
    if status in (401, 403):
        return Refused(f"the server does not let this client in ({status}): {body}")
    return ConnectionLost(f"the server answered {status}")


class _Socket:
    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, frame: str) -> None:
        with _closing_told():
            await self._socket.send(frame)

    async def receive(self) -> str | bytes:
        with _closing_told():
            return await self._socket.recv()


@contextmanager
def _closing_told() -> Generator[None]:
    from websockets.exceptions import ConnectionClosed  # noqa: PLC0415  (loaded with the socket)

    try:
        yield
    except ConnectionClosed as error:
        raise ConnectionLost(str(error)) from error


def pipes(command: Sequence[str]) -> Connect:
    """Connections to a child process, as ``["clew", "rpc"]``; its stderr is this process's."""

    @asynccontextmanager
    async def opened() -> AsyncGenerator[Connection]:
        child = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=MAX_FRAME_BYTES + 1024,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            yield _Pipes(child.stdout, child.stdin)
        finally:
            child.stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await child.wait()
            if child.returncode is None:
                child.kill()
                await child.wait()

    return opened


class _Pipes:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, frame: str) -> None:
        try:
            self._writer.write(f"{frame}\n".encode())
            await self._writer.drain()
        except OSError as error:
            raise ConnectionLost("the process has gone") from error

    async def receive(self) -> str | bytes:
        try:
            line = await self._reader.readline()
        except (OSError, ValueError) as error:
            raise ConnectionLost(str(error)) from error
        if not line.endswith(b"\n"):
            raise ConnectionLost("the process has gone")
        return line


def in_process(serve: Serve) -> Connect:
    """Connections to a server in this process and event loop."""

    @asynccontextmanager
    async def opened() -> AsyncGenerator[Connection]:
        ends = _Ends()
        task = asyncio.create_task(ends.serve(serve), name="rpc-in-process")
        try:
            yield ends
        finally:
            ends.close()
            # It ends by itself once it sees that nothing more comes.
            await asyncio.wait({task})
            if not task.cancelled() and (error := task.exception()):
                raise error

    return opened


class _Ends:
    """Both ends of a connection within a process."""

    def __init__(self) -> None:
        self._there: asyncio.Queue[str | None] = asyncio.Queue()
        self._back: asyncio.Queue[str | None] = asyncio.Queue(_MOST)
        self._over = asyncio.Event()

    async def send(self, frame: str) -> None:
        self._there.put_nowait(frame)

    async def receive(self) -> str:
        frame = await self._back.get()
        if frame is None:
            self._back.put_nowait(None)
            raise ConnectionLost("the server has stopped")
        return frame

    def close(self) -> None:
        self._there.put_nowait(None)
        self._over.set()
        # Whoever waits to send goes on, and is told that nobody reads.
        while not self._back.empty():
            self._back.get_nowait()

    async def serve(self, serve: Serve) -> None:
        try:
            await serve(self._frames(), self._answer)
        finally:
            while self._back.full():
                self._back.get_nowait()
            self._back.put_nowait(None)

    async def _frames(self) -> AsyncIterator[str]:
        while (frame := await self._there.get()) is not None:
            yield frame

    async def _answer(self, frame: str) -> None:
        if not self._over.is_set():
            await self._back.put(frame)
