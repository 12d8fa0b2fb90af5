"""Connections of channels: HTTP and WebSockets with time-outs, downloads, connection errors."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import httpx2
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidURI, WebSocketException

from clew.core.payload import as_object
from clew.errors import NotDelivered, NotSent, OutcomeUnknown
from clew.gateway.detached_calls import DetachedCalls

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from websockets.asyncio.client import ClientConnection

#: Seconds to connect, and for a whole call.
CONNECT_TIMEOUT, TOTAL_TIMEOUT = 10.0, 30.0
#: Seconds for a call that sends a file.
UPLOAD_TIMEOUT = 55.0
#: Seconds to close a WebSocket.
_CLOSE_TIMEOUT = 2.0
#: Connections at the same time.
_MAX_CONNECTIONS = 64

#: Errors that occur before the first byte of a request is sent.
_NOT_SENT_ERRORS = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.UnsupportedProtocol,
    httpx2.InvalidURL,
)


class PlatformHttp:
    """HTTP client of one channel; calls run to their end, even after their caller was cancelled."""

    def __init__(self, platform: str, *, connections: int = _MAX_CONNECTIONS) -> None:
        self._platform = platform
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(TOTAL_TIMEOUT, connect=CONNECT_TIMEOUT),
            limits=httpx2.Limits(max_connections=connections),
        )
        self._calls = DetachedCalls()

    async def request(
        self, method: str, url: str, *, seconds: float = TOTAL_TIMEOUT, **given: Any
    ) -> httpx2.Response:
        """
        Make one request; neither redirects are followed nor failures retried.

        :raises NotSent: if the request certainly did not arrive
        :raises OutcomeUnknown: if the connection failed otherwise
        """
        with translate_http_errors(self._platform):
            return await self._calls.run(self._send_request(method, url, seconds, given))

    async def _send_request(
        self, method: str, url: str, seconds: float, given: dict[str, Any]
    ) -> httpx2.Response:
        limits = httpx2.Timeout(seconds, connect=CONNECT_TIMEOUT)
        async with asyncio.timeout(seconds):
            return await self._client.request(method, url, timeout=limits, **given)

    async def download(
        self, url: str, *, most: int, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """
        Return the content of a file.

        :raises NotDelivered: if the platform refuses it, or it has more than ``most`` bytes
        """
        with translate_http_errors(self._platform):
            return await self._calls.run(self._read_file(url, most, headers))

    async def _read_file(self, url: str, most: int, headers: Mapping[str, str] | None) -> bytes:
        found = bytearray()
        async with self._client.stream("GET", url, headers=headers) as answer:
            if answer.status_code != 200:
                raise NotDelivered(f"{self._platform} did not send the file: {answer.status_code}")
            async for piece in answer.aiter_bytes():
                found += piece
                if len(found) > most:
                    raise NotDelivered(f"the file has more than {most:,} bytes")
        return bytes(found)

    async def aclose(self) -> None:
        """End the calls that still run, and close the connections."""
        await self._calls.cancel_all()
        await self._client.aclose()


async def open_websocket(
    platform: str, url: str, *, ping_interval: float | None = None
) -> ClientConnection:
    """
    Open a WebSocket; with a ``ping_interval`` a silent one is closed.

    :raises NotSent: if the server cannot be reached
    :raises OutcomeUnknown: if it refuses the connection
    """
    with translate_http_errors(platform):
        try:
            return await connect(
                url,
                max_size=None,
                open_timeout=CONNECT_TIMEOUT,
                close_timeout=_CLOSE_TIMEOUT,
                ping_interval=ping_interval,
                ping_timeout=ping_interval and ping_interval / 2,
            )
        except (InvalidURI, OSError) as error:
            raise NotSent(f"{platform} cannot be reached ({type(error).__name__})") from None


def parse_json_object(response: httpx2.Response) -> dict[str, Any]:
    """Return the answer of a platform; without one that makes sense, an empty one."""
    try:
        return as_object(response.json())
    except ValueError:
        return {}


def parse_retry_after(given: str, *, otherwise: float) -> float:
    """Return the seconds of a header ``Retry-After``, which may be a date."""
    if given.isascii() and given.isdigit():
        return float(given)
    try:
        until = parsedate_to_datetime(given)
    except ValueError:
        return otherwise
    left = until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)
    return max(1.0, left.total_seconds())


@contextmanager
def translate_http_errors(platform: str) -> Generator[None]:
    """
    Translate connection errors of ``platform`` into channel errors.

    :raises NotSent: if the request certainly did not arrive
    :raises OutcomeUnknown: otherwise
    """
    try:
        yield
    except _NOT_SENT_ERRORS as error:
        raise NotSent(f"{platform} cannot be reached ({type(error).__name__})") from None
    except (TimeoutError, httpx2.HTTPError, WebSocketException, OSError) as error:
        what = type(error).__name__
        raise OutcomeUnknown(f"the connection to {platform} failed ({what})") from None
