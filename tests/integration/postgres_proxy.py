"""Stands between a store and its PostgreSQL, and fails as networks and poolers do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

#: In a request and in its answer; the end tells it from READ COMMITTED.
_COMMIT = b"COMMIT\0"


@contextlib.asynccontextmanager
async def listening(handler: Handler, url: str, *, host: str = "127.0.0.1") -> AsyncGenerator[str]:
    """Serve ``handler`` on an address of this machine; the URL that leads through it."""
    clients: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        clients[task] = writer
        await handler(reader, writer)
        writer.close()

    server = await asyncio.start_server(handle, host, 0)
    port = server.sockets[0].getsockname()[1]
    try:
        parts = urlsplit(url)
        user = f"{parts.username}@" if parts.username else ""
        yield urlunsplit(parts._replace(netloc=f"{user}{host}:{port}"))
    finally:
        server.close()
        for writer in clients.values():
            writer.close()
        if clients:
            await asyncio.wait(clients)


async def _connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(url)
    return await asyncio.open_connection(parts.hostname, parts.port)


class _Commits:
    """
    The COMMITs of one connection, counted.

    Jobs share a pipeline: the COMMIT of another may be in the same piece, or be answered first.
    """

    def __init__(self) -> None:
        #: Numbers of COMMITs: of the latest that is meant, and of the one whose answer is taken.
        self.meant = self.swallowed = 0
        self._asked = self._answered = 0
        self._came_by: bytes | None = None

    def pass_request(self, data: bytes, about: bytes) -> bool:
        """Return whether ``data`` has the COMMIT of a transaction in which ``about`` came by."""
        # A transaction of before may end only now, after a test has gone on to the next one.
        start = 0 if self._came_by == about else data.find(about)
        self._came_by = about if start >= 0 else None
        found = start >= 0 and _COMMIT in data[start:]
        if found:
            self.meant = self._asked + data[:start].count(_COMMIT) + 1
            self._came_by = None
        self._asked += data.count(_COMMIT)
        return found

    def pass_answer(self, data: bytes) -> bool:
        """Return whether the answer that is swallowed is in ``data``."""
        self._answered += data.count(_COMMIT)
        return 0 < self.swallowed <= self._answered


class CuttingProxy:
    """Passes everything on, and cuts the connection at the next COMMITs as it was told."""

    def __init__(self, url: str) -> None:
        self._url = url
        #: Faults at the next COMMITs: "lose" the request, or "swallow" the answer; "swallow
        #: and go" goes away then.
        self.plan: list[str] = []
        #: Only in a transaction in which these bytes came by.
        self.about = b""
        self._away = False
        self._clients: set[asyncio.StreamWriter] = set()

    def go_away(self) -> None:
        """Cut every connection, and refuse new ones."""
        self._away = True
        for writer in self._clients:
            writer.close()

    def come_back(self) -> None:
        self._away = False

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._away:
            return
        self._clients.add(writer)
        try:
            await self._pass_on(reader, writer)
        finally:
            self._clients.discard(writer)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await _connect(self._url)
        commits = _Commits()
        answers = asyncio.create_task(_answer(server_reader, writer, commits))
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                how = (
                    self.plan.pop(0) if commits.pass_request(data, self.about) and self.plan else ""
                )
                if how == "lose":
                    break
                if how.startswith("swallow"):
                    commits.swallowed = commits.meant
                if how == "swallow and go":
                    answers.add_done_callback(lambda _: self.go_away())
                server_writer.write(data)
        for end in (writer, server_writer):
            end.close()
        await answers


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, commits: _Commits
) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            if commits.pass_answer(data):
                break
            writer.write(data)
    writer.close()


class BlackHole:
    """
    Passes everything on while it is ``open``; else takes what comes and lets nothing through.

    A server over TCP of any kind may be behind it.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self.open = asyncio.Event()
        self.open.set()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.open.wait()
        server_reader, server_writer = await _connect(self._url)
        ways = (self._pass(reader, server_writer), self._pass(server_reader, writer))
        await asyncio.gather(*ways)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await self.open.wait()
                writer.write(data)
        await self.open.wait()
        writer.close()


class Pooler:
    """A connection pooler with one backend, which clients share transaction by transaction."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._turn = asyncio.Lock()
        self._clients = 0
        self._backend: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            greeting = await _greeting(reader, writer)
            async with self._turn:
                if self._backend is None:
                    self._backend = await _connect(self._url)
                    self._backend[1].write(greeting)
                    await _until_ready(self._backend[0])
            writer.write(_WELCOME + struct.pack("!ciii", b"K", 12, _invented(), 0) + _READY)
            while True:
                message = await _message(reader)
                async with self._turn:
                    await self._transaction(message, reader, writer)
        self._clients -= 1
        if self._backend is not None and not self._clients:
            self._backend[1].close()
            self._backend = None

    async def _transaction(
        self, message: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        assert self._backend is not None
        state = b"T"
        while state != b"I":
            if message[:1] == b"X":
                raise ConnectionResetError
            self._backend[1].write(message)
            if message[:1] in b"QS":
                answer, state = await _until_ready(self._backend[0])
                writer.write(answer)
                if state == b"I":
                    return
            message = await _message(reader)


#: Requests of clients before the start-up message: SSL, GSSAPI.
_ENCRYPTION = (80877103, 80877104)
_READY = struct.pack("!cic", b"Z", 5, b"I")
_WELCOME = struct.pack("!cii", b"R", 8, 0) + b"".join(
    struct.pack("!ci", b"S", 4 + len(name) + len(value) + 2) + name + b"\0" + value + b"\0"
    for name, value in (
        (b"server_version", b"15.0"),
        (b"client_encoding", b"UTF8"),
        (b"standard_conforming_strings", b"on"),
    )
)


def _invented() -> int:
    # A pooler tells each client a number of its own, since the client may cancel by it.
    return int.from_bytes(os.urandom(3), "big")


async def _greeting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    while True:
        head = await reader.readexactly(8)
        length, code = struct.unpack("!ii", head)
        if code not in _ENCRYPTION:
            return head + await reader.readexactly(length - 8)
        writer.write(b"N")


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    (length,) = struct.unpack("!i", head[1:])
    return head + await reader.readexactly(length - 4)


async def _until_ready(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    seen = b""
    while True:
        message = await _message(reader)
        seen += message
        if message[:1] == b"Z":
            return seen, message[5:6]
