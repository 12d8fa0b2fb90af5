"""Connections that cannot be held for nothing: a request's head has to arrive in time and size."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from clew.api.pace import PACE, Pace
from clew.api.problems import Problem

if TYPE_CHECKING:
    import asyncio

    from uvicorn.config import Config
    from uvicorn.server import ServerState

#: Bytes of a request's head.
HEAD_BYTES = 64 * 1024

_TOO_LARGE = Problem(
    status=431, message=f"the head is larger than {HEAD_BYTES // 1024} KB", code="head_too_large"
)
_INVALID = Problem(status=400, message="this is no HTTP request", code="invalid_http")


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
