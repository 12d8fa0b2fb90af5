"""What every fake server is: HTTP on loopback, with a thread and an event loop of its own."""

from __future__ import annotations

import abc
import asyncio
import socket
import threading
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Self

from clew.testing.provider.http import HttpRequest, Watched, read_request

if TYPE_CHECKING:
    from types import TracebackType


class FakeServer(abc.ABC):
    """
    Answers requests on loopback while its ``with`` block lasts, as its subclass says.

    Begun again, it has the port that it had. Closing breaks off what is still being answered.
    """

    def __init__(self, *, port: int = 0) -> None:
        self._port = port
        self._connections: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()

    @property
    def url(self) -> str:
        """``http://127.0.0.1:PORT``."""
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", self._port), backlog=1024)
        self._port = self._socket.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        # Of this loop: one that waited in an earlier one cannot wait here.
        self._news = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()

    def look_again(self) -> None:
        """From any thread: there is news for whoever waits for some (``_news``)."""
        self._loop.call_soon_threadsafe(self._news.set)

    @abc.abstractmethod
    async def _respond(
        self, http: HttpRequest, reader: Watched, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; ``False`` if the connection is to be cut."""

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as connections:

            def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                assert isinstance(reader, Watched)
                if self._closing.is_set():
                    writer.close()
                    return
                _send_at_once(writer)
                task = connections.create_task(self._connection(reader, writer))
                self._connections.add(task)
                task.add_done_callback(self._connections.discard)

            server = await self._loop.create_server(
                lambda: asyncio.StreamReaderProtocol(Watched(), connected), sock=self._socket
            )
            await self._closing.wait()
            server.close()
            for task in list(self._connections):
                task.cancel()

    async def _connection(self, reader: Watched, writer: asyncio.StreamWriter) -> None:
        # Suppressed: the client went away, which must not end the server.
        with closing(writer), suppress(OSError):
            while (http := await read_request(reader)) is not None:
                if not await self._respond(http, reader, writer):
                    return


def _send_at_once(writer: asyncio.StreamWriter) -> None:
    """
    Do not hold small pieces back.

    asyncio does it by itself only for sockets whose protocol is named, which accepted ones of
    :func:`socket.create_server` are not: each streamed answer would wait 40 ms for the client.
    """
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
