"""Calls over aiohttp, for the channels that make them: their time, files, broken connections."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import aiohttp

from clew.errors import NotDelivered, NotSent, OutcomeUnknown

if TYPE_CHECKING:
    from collections.abc import Generator

#: Seconds to connect, and for a whole call.
CONNECT, WHOLE = 10.0, 30.0
#: Bytes of a file that are taken at once.
_PIECE = 1 << 16

#: Failures before the first byte of a request.
_BEFORE = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)


def client() -> aiohttp.ClientSession:
    """To be closed by whoever asks for it."""
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=WHOLE, connect=CONNECT))


@contextmanager
def connected(platform: str, *senseless: type[Exception]) -> Generator[None]:
    """
    Broken connections as our failures; ``senseless`` is what an answer without sense raises.

    :raises NotSent: if nothing can have arrived
    :raises OutcomeUnknown: else
    """
    try:
        yield
    except _BEFORE as error:
        raise NotSent(f"{platform} cannot be reached ({type(error).__name__})") from None
    except (TimeoutError, aiohttp.ClientError, OSError, *senseless) as error:
        what = type(error).__name__
        raise OutcomeUnknown(f"the connection to {platform} failed ({what})") from None


async def content(answer: aiohttp.ClientResponse, platform: str, *, most: int) -> bytes:
    """
    A file that a platform gives.

    :raises NotDelivered: if it does not, or if there are more bytes than ``most``
    """
    if answer.status != 200:
        raise NotDelivered(f"{platform} did not give the file: {answer.status}")
    found = bytearray()
    async for piece in answer.content.iter_chunked(_PIECE):
        found += piece
        if len(found) > most:
            raise NotDelivered(f"the file has more than {most:,} bytes")
    return bytes(found)
