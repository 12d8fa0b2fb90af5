"""HTTP helpers for channels built on aiohttp: time-outs, downloads, connection errors."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import aiohttp

from clew.errors import NotDelivered, NotSent, OutcomeUnknown

if TYPE_CHECKING:
    from collections.abc import Generator

#: Seconds to connect, and for a whole call.
CONNECT_TIMEOUT, TOTAL_TIMEOUT = 10.0, 30.0
#: Bytes of a file that are read at once.
_CHUNK_SIZE = 1 << 16

#: Errors that occur before the first byte of a request is sent.
_NOT_SENT_ERRORS = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)


def create_http_session() -> aiohttp.ClientSession:
    """Create an HTTP session; the caller closes it."""
    return aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=TOTAL_TIMEOUT, connect=CONNECT_TIMEOUT)
    )


@contextmanager
def translate_http_errors(platform: str, *senseless: type[Exception]) -> Generator[None]:
    """
    Translate connection errors of ``platform`` into channel errors.

    The other arguments are the exceptions that a malformed response raises.

    :raises NotSent: if the request certainly did not arrive
    :raises OutcomeUnknown: otherwise
    """
    try:
        yield
    except _NOT_SENT_ERRORS as error:
        raise NotSent(f"{platform} cannot be reached ({type(error).__name__})") from None
    except (TimeoutError, aiohttp.ClientError, OSError, *senseless) as error:
        what = type(error).__name__
        raise OutcomeUnknown(f"the connection to {platform} failed ({what})") from None


async def read_file_content(answer: aiohttp.ClientResponse, platform: str, *, most: int) -> bytes:
    """
    Read the content of a downloaded file.

    :raises NotDelivered: if the platform refuses it, or it has more than ``most`` bytes
    """
    if answer.status != 200:
        raise NotDelivered(f"{platform} did not give the file: {answer.status}")
    found = bytearray()
    async for piece in answer.content.iter_chunked(_CHUNK_SIZE):
        found += piece
        if len(found) > most:
            raise NotDelivered(f"the file has more than {most:,} bytes")
    return bytes(found)
