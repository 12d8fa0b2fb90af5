"""As much HTTP/1.1 as a client of a model needs, with the power to break it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_BODY = 256 * 1024 * 1024


class Watched(asyncio.StreamReader):
    """A reader that tells at once when the peer has gone, even while nobody reads."""

    def __init__(self) -> None:
        super().__init__(limit=1 << 20)
        self.gone = asyncio.Event()

    def feed_eof(self) -> None:
        self.gone.set()
        super().feed_eof()

    def set_exception(self, exc: Exception) -> None:
        self.gone.set()
        super().set_exception(exc)


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpRequest:
    """A request, header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    #: What stands behind the question mark.
    query: str = ""


async def read_request(reader: asyncio.StreamReader) -> HttpRequest | None:
    """The next request of a connection, ``None`` at its end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        pairs = (line.partition(":") for line in lines if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        size = min(int(headers.get("content-length", "0")), MAX_BODY)
        body = await reader.readexactly(size)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, ValueError):
        return None
    where = urlsplit(target)
    return HttpRequest(
        method=method, path=where.path, headers=headers, body=body, query=where.query
    )


class Outbound:
    """The answer to one request."""

    def __init__(self, writer: asyncio.StreamWriter, request_id: str) -> None:
        self._writer = writer
        self._id = request_id
        self.status: int | None = None

    async def send(
        self, status: int, payload: bytes, kind: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """A whole answer."""
        self._head(status, {"content-length": str(len(payload)), "content-type": kind}, headers)
        self._writer.write(payload)
        await self._writer.drain()

    async def send_json(
        self, status: int, value: object, headers: Mapping[str, str] | None = None
    ) -> None:
        """A whole answer in JSON."""
        payload = json.dumps(value, ensure_ascii=False).encode()
        await self.send(status, payload, "application/json", headers)

    async def send_pieces(self, status: int, pieces: Iterable[bytes], kind: str | None) -> None:
        """An answer in pieces, as they are."""
        named = {} if kind is None else {"content-type": kind}
        self._head(status, {**named, "transfer-encoding": "chunked"})
        for piece in pieces:
            self._writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await self._writer.drain()
        await self.finish()

    async def open(self, kind: str) -> None:
        """Begin an answer of unknown length."""
        chunked = {"content-type": kind, "transfer-encoding": "chunked"}
        self._head(200, {**chunked, "cache-control": "no-cache"})
        await self._writer.drain()

    async def write(self, text: str) -> None:
        """One chunk of an answer that was opened."""
        data = text.encode()
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self._writer.drain()

    async def finish(self) -> None:
        """The proper end of an answer that was opened."""
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def send_half(self, payload: bytes, kind: str) -> None:
        """The first half of a whole answer, then the end of the connection."""
        self._head(200, {"content-length": str(len(payload)), "content-type": kind})
        self._writer.write(payload[: len(payload) // 2])
        await self._writer.drain()
        self.cut()

    def cut(self) -> None:
        """Close the socket as it is; what was written still arrives."""
        self._writer.close()

    def _head(
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
