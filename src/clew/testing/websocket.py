"""The server side of a WebSocket, as far as a chat platform needs it, with failures."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.testing.provider.http import HttpRequest

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUED, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10


class FakeWebSocket:
    """One connection with JSON text messages."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def accept(
        cls, http: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> FakeWebSocket:
        """Accept the upgrade that a request asks for."""
        digest = hashlib.sha1(http.headers["sec-websocket-key"].encode() + _GUID)
        accept = base64.b64encode(digest.digest()).decode()
        head = [
            "HTTP/1.1 101 Switching Protocols",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Accept: {accept}",
        ]
        writer.write("\r\n".join([*head, "", ""]).encode())
        await writer.drain()
        return cls(reader, writer)

    async def receive(self) -> Any:
        """Return the next message; ``None`` at the end."""
        whole = b""
        while True:
            try:
                final, code, payload = await self._read_frame()
            except (asyncio.IncompleteReadError, OSError):
                return None
            if code == _CLOSE:
                self._write_frame(_CLOSE, payload[:2])
                return None
            if code == _PING:
                self._write_frame(_PONG, payload)
            elif code in (_CONTINUED, _TEXT, _BINARY):
                whole += payload
                if final:
                    return json.loads(whole)

    async def _read_frame(self) -> tuple[bool, int, bytes]:
        first, second = await self._reader.readexactly(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack("!H", await self._reader.readexactly(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", await self._reader.readexactly(8))
        mask = await self._reader.readexactly(4) if second & 0x80 else bytes(4)
        payload = await self._reader.readexactly(size)
        plain = bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))
        return bool(first & 0x80), first & 0x0F, plain

    def _write_frame(self, code: int, payload: bytes) -> None:
        size = len(payload)
        if size < 126:
            head = bytes([0x80 | code, size])
        elif size < 1 << 16:
            head = bytes([0x80 | code, 126]) + struct.pack("!H", size)
        else:
            head = bytes([0x80 | code, 127]) + struct.pack("!Q", size)
        if not self._writer.is_closing():
            self._writer.write(head + payload)

    def send(self, message: object) -> None:
        """Send a message; it is lost if the connection is closed."""
        self._write_frame(_TEXT, json.dumps(message, ensure_ascii=False).encode())

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection with a code and a reason."""
        self._write_frame(_CLOSE, struct.pack("!H", code) + reason.encode())
        self._writer.close()

    def abort(self) -> None:
        """Abort the connection without a close frame."""
        self._writer.transport.abort()
