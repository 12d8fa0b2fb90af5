"""A minimal HTTP/1.1 server side that can also break the protocol."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_BODY_BYTES = 256 * 1024 * 1024


class WatchedReader(asyncio.StreamReader):
    """A stream reader that detects a disconnect at once, even without a reader."""

    def __init__(self) -> None:
        super().__init__(limit=1 << 20)
        self.disconnected = asyncio.Event()

    def feed_eof(self) -> None:
        self.disconnected.set()
        super().feed_eof()

    def set_exception(self, exc: Exception) -> None:
        self.disconnected.set()
        super().set_exception(exc)


class HttpRequest(Record):
    """A request, with header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    #: The query string.
    query: str = ""


async def read_request(reader: asyncio.StreamReader) -> HttpRequest | None:
    """Return the next request of a connection, ``None`` at its end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        pairs = (line.partition(":") for line in lines if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        size = min(int(headers.get("content-length", "0")), MAX_BODY_BYTES)
        body = await reader.readexactly(size)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, ValueError):
        return None
    where = urlsplit(target)
    return HttpRequest(
        method=method, path=where.path, headers=headers, body=body, query=where.query
    )


class ResponseWriter:
    """The response to one request."""

    def __init__(self, writer: asyncio.StreamWriter, request_id: str) -> None:
        self._writer = writer
        self._id = request_id
        self.status: int | None = None

    async def send_response(
        self, status: int, payload: bytes, kind: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a complete response."""
        self._write_head(
            status, {"content-length": str(len(payload)), "content-type": kind}, headers
        )
        self._writer.write(payload)
        await self._writer.drain()

    async def send_json(
        self, status: int, value: object, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a complete JSON response."""
        payload = json.dumps(value, ensure_ascii=False).encode()
        await self.send_response(status, payload, "application/json", headers)

    async def send_pieces(self, status: int, pieces: Iterable[bytes], kind: str | None) -> None:
        """Send a response in pieces, unchanged."""
        named = {} if kind is None else {"content-type": kind}
        self._write_head(status, {**named, "transfer-encoding": "chunked"})
        for piece in pieces:
            self._writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await self._writer.drain()
        await self.finish_stream()

    async def start_stream(self, kind: str) -> None:
        """Start a response of unknown length."""
        chunked = {"content-type": kind, "transfer-encoding": "chunked"}
        self._write_head(200, {**chunked, "cache-control": "no-cache"})
        await self._writer.drain()

    async def write_chunk(self, text: str) -> None:
        """Send one chunk of a started response."""
        data = text.encode()
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self._writer.drain()

    async def finish_stream(self) -> None:
        """End a started response properly."""
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def send_half(self, payload: bytes, kind: str) -> None:
        """Send the first half of a complete response, then close the connection."""
        self._write_head(200, {"content-length": str(len(payload)), "content-type": kind})
        self._writer.write(payload[: len(payload) // 2])
        await self._writer.drain()
        self.cut_connection()

    def cut_connection(self) -> None:
        """Close the socket at once; data already written still arrives."""
        self._writer.close()

    def _write_head(
        self, status: int, headers: Mapping[str, str], more: Mapping[str, str] | None = None
    ) -> None:
        self.status = status
        try:
            phrase = HTTPStatus(status).phrase
        except ValueError:
            phrase = "Unknown"
        ids = {"x-request-id": self._id, "request-id": self._id}
        lines = [f"{name}: {value}" for name, value in {**headers, **ids, **(more or {})}.items()]
        head = "\r\n".join([f"HTTP/1.1 {status} {phrase}", *lines, "", ""])
        self._writer.write(head.encode("latin-1"))
