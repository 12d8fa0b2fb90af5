"""Socket mode: envelopes, each acknowledged only once what it tells is stored."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import aiohttp

from clew.errors import AccountRefused, NotSent
from clew.gateway.channels.slack.transport import translated

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

#: Seconds between two signs of life that are asked for: the connection is closed without them.
_BEAT = 15.0
#: Seconds for an end in order.
_CLOSE = 2.0

Json = dict[str, Any]


class Socket:
    """One connection; Slack asks for a new one every few hours."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http, self._url = http, url
        self._arrived: asyncio.Queue[Json | None] = asyncio.Queue()
        #: Slack asked for another connection in its place.
        self.ends = False

    async def __aenter__(self) -> Self:
        with translated():
            self._there = await self._http.ws_connect(self._url, heartbeat=_BEAT, max_msg_size=0)
        self._reading = asyncio.create_task(self._read(), name="slack:socket")
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._reading.cancel()
        with suppress(asyncio.CancelledError):
            await self._reading
        # In order where Slack answers at once; else it is let go.
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE):
                await self._there.close()

    async def _read(self) -> None:
        try:
            async for message in self._there:
                if message.type is aiohttp.WSMsgType.TEXT:
                    self._arrived.put_nowait(json.loads(message.data))
        finally:
            self._arrived.put_nowait(None)

    async def envelopes(self, *, seconds: float) -> Sequence[Json]:
        """
        Those that have come, or come within so many seconds.

        :raises NotSent: if the connection is lost
        :raises AccountRefused: if Slack ends it for good
        """
        found: list[Json] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                found += self._sorted(await self._arrived.get())
        while not (self._arrived.empty() or self.ends):
            found += self._sorted(self._arrived.get_nowait())
        return found

    def _sorted(self, message: Json | None) -> Sequence[Json]:
        if message is None:
            # For the next who asks, too.
            self._arrived.put_nowait(None)
            raise NotSent("Slack closed the connection")
        if message.get("type") == "disconnect":
            if message.get("reason") == "link_disabled":
                raise AccountRefused("socket mode is off: switch it on on the app's page")
            self.ends = True
        return [message] if "envelope_id" in message else []

    async def acknowledge(self, envelopes: Sequence[Json]) -> None:
        """What they tell is stored; where this does not arrive, they are told again."""
        with suppress(aiohttp.ClientError, OSError):
            for envelope in envelopes:
                await self._there.send_str(json.dumps({"envelope_id": envelope["envelope_id"]}))
