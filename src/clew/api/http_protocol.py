"""HTTP protocol with limits on the size and time of a request head, against idle connections."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from clew.api.problems import Problem
from clew.api.timeouts import DEFAULT_TIMEOUTS, ApiTimeouts

if TYPE_CHECKING:
    import asyncio
    from array import array

    from uvicorn.config import Config
    from uvicorn.server import ServerState

#: Bytes of a request head.
HEAD_BYTES = 64 * 1024

_TOO_LARGE = Problem(
    status=431, message=f"the head is larger than {HEAD_BYTES // 1024} KB", code="head_too_large"
)
_INVALID = Problem(status=400, message="this is no HTTP request", code="invalid_http")


class _UpgradeIgnoringParser(httptools.HttpRequestParser):
    """
    A parser that continues after an upgrade offer that the server ignores.

    A server may ignore an offer. Java's client and ``curl --http2`` offer ``h2c`` with
    every request, and httptools stops at the end of that head: what follows would be lost.
    """

    def __init__(self, connection: LimitedHttpProtocol) -> None:
        super().__init__(connection)
        self.set_dangerous_leniencies(lenient_data_after_close=True)
        self._connection = connection

    def feed_data(self, data: bytes | bytearray | memoryview | array[int]) -> None:
        parser, rest = self, data
        # No recursion: one packet can hold thousands of requests, each with its offer.
        while (after := parser.feed_until_offer(rest)) is not None:
            rest = self._connection.head_without_upgrade + bytes(rest[after:])
            parser = self._connection.parser = _UpgradeIgnoringParser(self._connection)

    def feed_until_offer(self, data: bytes | bytearray | memoryview | array[int]) -> int | None:
        """
        Parse up to an ignored upgrade offer.

        Return the offset at which its head ends, or ``None`` if there is no offer.
        """
        try:
            super().feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            if not self._connection.ignores_upgrade:
                raise
            (end_of_head,) = offer.args
            return int(end_of_head)
        return None


class LimitedHttpProtocol(HttpToolsProtocol):
    """
    uvicorn's HTTP protocol with the limits that it leaves to a proxy.

    The rest of a refused body is discarded for a while: closing at once would lose the
    response.
    """

    #: Seconds for a head to arrive, from its first byte or from connecting.
    head_seconds = DEFAULT_TIMEOUTS.head

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
        self.parser = _UpgradeIgnoringParser(self)

    @property
    def ignores_upgrade(self) -> bool:
        """Return True if the request asks for a protocol that it cannot have."""
        return not (self.parser.get_method() == b"GET" and self._should_upgrade())

    @property
    def head_without_upgrade(self) -> bytes:
        """Return the head of the request without its upgrade offer."""
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/1.1"]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def on_headers_complete(self) -> None:
        # Its body is not read yet: the request starts once the parser continues without the offer.
        if not (self.parser.should_upgrade() and self.ignores_upgrade):
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not (self.parser.should_upgrade() and self.ignores_upgrade):
            super().on_message_complete()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._upgraded:
            return
        if self.transport.is_closing() or self._is_answering:
            self._stop_head_timer()
            return
        if not self._is_discarding:
            self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES:
            self._send_problem(_TOO_LARGE)
        elif self._head_timer is None:
            self._start_head_timer()

    def handle_websocket_upgrade(self) -> None:
        # The connection now belongs to another protocol, which has its own limits.
        self._upgraded = True
        self._stop_head_timer()
        super().handle_websocket_upgrade()

    @property
    def _is_answering(self) -> bool:
        # Before the first request there is no cycle, whatever its type says.
        return bool(self.cycle) and not self.cycle.response_complete

    @property
    def _is_discarding(self) -> bool:
        return bool(self.cycle) and self.cycle.more_body

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(self.head_seconds, self._close_on_timeout)

    def _stop_head_timer(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _close_on_timeout(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        self._send_problem(_INVALID)

    def _send_problem(self, problem: Problem) -> None:
        body = json.dumps(problem.json_body).encode()
        head = f"HTTP/1.1 {problem.status} \r\ncontent-type: application/json\r\n"
        length = f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(head.encode() + length.encode() + body)
        self.transport.close()


def protocol_with_timeouts(pace: ApiTimeouts) -> type[LimitedHttpProtocol]:
    """Return a protocol class with other timeouts: uvicorn makes the instances itself."""

    class TimedHttpProtocol(LimitedHttpProtocol):
        head_seconds = pace.head

    return TimedHttpProtocol
