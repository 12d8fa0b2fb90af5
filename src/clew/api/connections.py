"""Connections that cannot be held for nothing: a request's head has to arrive in time and size."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from clew.api.pace import PACE, Pace
from clew.api.problems import Problem

if TYPE_CHECKING:
    import asyncio
    from array import array

    from uvicorn.config import Config
    from uvicorn.server import ServerState

#: Bytes of a request's head.
HEAD_BYTES = 64 * 1024

_TOO_LARGE = Problem(
    status=431, message=f"the head is larger than {HEAD_BYTES // 1024} KB", code="head_too_large"
)
_INVALID = Problem(status=400, message="this is no HTTP request", code="invalid_http")


class _Parser(httptools.HttpRequestParser):
    """
    A parser that goes on where a client offers a protocol that it cannot have here.

    A server may ignore an offer. Java's client and ``curl --http2`` offer ``h2c`` with every
    request, and httptools ends its work at the head: what follows would be lost.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.set_dangerous_leniencies(lenient_data_after_close=True)
        self._connection = connection

    def feed_data(self, data: bytes | bytearray | memoryview | array[int]) -> None:
        parser, rest = self, data
        # Not by recursion: one packet holds thousands of requests, each with its offer.
        while (after := parser.feed_until_offer(rest)) is not None:
            rest = self._connection.head_without_upgrade + bytes(rest[after:])
            parser = self._connection.parser = _Parser(self._connection)

    def feed_until_offer(self, data: bytes | bytearray | memoryview | array[int]) -> int | None:
        """Parse up to an offer that is ignored; where its head ends, ``None`` if there is none."""
        try:
            super().feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            if not self._connection.ignores_upgrade:
                raise
            (end_of_head,) = offer.args
            return int(end_of_head)
        return None


class Connection(HttpToolsProtocol):
    """
    uvicorn's connection with the limits that it leaves to a proxy.

    What a client still sends of a body that was refused is discarded for as long: closing at once
    would take the answer away from it.
    """

    #: How long a head may take, from its first byte or from connecting.
    head_seconds = PACE.head

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._upgraded = False
        self.parser = _Parser(self)

    @property
    def ignores_upgrade(self) -> bool:
        """Whether the request asks for another protocol than the one that it can have."""
        return not (self.parser.get_method() == b"GET" and self._should_upgrade())

    @property
    def head_without_upgrade(self) -> bytes:
        """The head of the request, as if its client had not asked for another protocol."""
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/1.1"]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def on_headers_complete(self) -> None:
        # Its body is not read yet: the request begins once the parser goes on without the offer.
        if not (self.parser.should_upgrade() and self.ignores_upgrade):
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not (self.parser.should_upgrade() and self.ignores_upgrade):
            super().on_message_complete()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._upgraded:
            return
        if self.transport.is_closing() or self._answering:
            self._head_arrived()
            return
        if not self._discarding:
            self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES:
            self._refuse(_TOO_LARGE)
        elif self._head_timer is None:
            self._await_head()

    def handle_websocket_upgrade(self) -> None:
        # From here on the connection is another protocol's, which has limits of its own.
        self._upgraded = True
        self._head_arrived()
        super().handle_websocket_upgrade()

    @property
    def _answering(self) -> bool:
        # Before the first request there is no cycle, whatever its type says.
        return bool(self.cycle) and not self.cycle.response_complete

    @property
    def _discarding(self) -> bool:
        return bool(self.cycle) and self.cycle.more_body

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.head_seconds, self._too_late)

    def _head_arrived(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _too_late(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        self._refuse(_INVALID)

    def _refuse(self, problem: Problem) -> None:
        body = json.dumps(problem.body).encode()
        head = f"HTTP/1.1 {problem.status} \r\ncontent-type: application/json\r\n"
        length = f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(head.encode() + length.encode() + body)
        self.transport.close()


def connection_with(pace: Pace) -> type[Connection]:
    """The class of connections at another pace: uvicorn makes them itself."""

    class Paced(Connection):
        head_seconds = pace.head

    return Paced
