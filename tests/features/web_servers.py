"""Servers that answer with the bytes they are given, for what reads the web."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, Iterable


@dataclass(kw_only=True, slots=True)
class ByteServer:
    """A server on this machine; what it is asked for, and what it answers by path."""

    port: int = 0
    answers: dict[str, bytes | Iterable[bytes]] = field(
        default_factory=dict[str, "bytes | Iterable[bytes]"]
    )
    requests: list[bytes] = field(default_factory=list[bytes])

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
            body = await reader.readexactly(int(length or 0))
            self.requests.append(head + body)
            path = head.split()[1].decode().partition("?")[0]
            answer = self.answers.get(path, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            for piece in (answer,) if isinstance(answer, bytes) else answer:
                writer.write(piece)
                await writer.drain()
            if path.startswith("/hangs"):
                await reader.read()
        writer.close()


def page(body: bytes, kind: str = "text/html", *more: str) -> bytes:
    """A whole answer."""
    head = [f"Content-Type: {kind}", f"Content-Length: {len(body)}", *more]
    return "\r\n".join(["HTTP/1.1 200 OK", *head, "", ""]).encode() + body


def moved(to: str) -> bytes:
    """A redirect."""
    return f"HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n".encode()


@asynccontextmanager
async def serve(tls: ssl.SSLContext | None = None) -> AsyncGenerator[ByteServer]:
    server = ByteServer()
    listening = await asyncio.start_server(server.handle, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
