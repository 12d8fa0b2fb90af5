"""Base of all fake servers: HTTP on loopback, with a thread and event loop of its own."""

from __future__ import annotations

import abc
import asyncio
import socket
import threading
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Self

from clew.testing.provider.http import HttpRequest, WatchedReader, read_request

if TYPE_CHECKING:
    from types import TracebackType


class FakeServer(abc.ABC):
    """
    A server on loopback that answers requests while its ``with`` block lasts.

    Started again, it uses the same port. Closing aborts responses that are in progress.
    """

    def __init__(self, *, port: int = 0) -> None:
        self._port = port
        self._connections: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()

    @property
    def url(self) -> str:
        """Return ``http://127.0.0.1:PORT``."""
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", self._port), backlog=1024)
        self._port = self._socket.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        # Bound to this loop: an event of an earlier loop cannot be awaited here.
        self._news = asyncio.Event()
        self._thread = threading.Thread(
            target=self._run_loop, name=type(self).__name__, daemon=True
        )
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

    def notify_news(self) -> None:
        """Wake those who wait for news (``_news``); may be called from any thread."""
        self._loop.call_soon_threadsafe(self._news.set)

    @abc.abstractmethod
    async def _respond(
        self, http: HttpRequest, reader: WatchedReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; return ``False`` to cut the connection."""

    def _run_loop(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve_until_closed())

    async def _serve_until_closed(self) -> None:
        async with asyncio.TaskGroup() as connections:

            def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                assert isinstance(reader, WatchedReader)
                if self._closing.is_set():
                    writer.close()
                    return
                _disable_nagle(writer)
                task = connections.create_task(self._serve_connection(reader, writer))
                self._connections.add(task)
                task.add_done_callback(self._connections.discard)

            server = await self._loop.create_server(
                lambda: asyncio.StreamReaderProtocol(WatchedReader(), connected), sock=self._socket
            )
            await self._closing.wait()
            server.close()
            for task in list(self._connections):
                task.cancel()

    async def _serve_connection(self, reader: WatchedReader, writer: asyncio.StreamWriter) -> None:
        # Suppressed: the client went away, which must not end the server.
        with closing(writer), suppress(OSError):
            while (http := await read_request(reader)) is not None:
                if not await self._respond(http, reader, writer):
                    return


def _disable_nagle(writer: asyncio.StreamWriter) -> None:
    """
    Disable Nagle's algorithm.

    asyncio does so itself only for sockets with a named protocol, which accepted sockets of
    :func:`socket.create_server` lack: each streamed answer would wait 40 ms for the client.
    """
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
