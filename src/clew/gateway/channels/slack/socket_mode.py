"""Socket Mode: envelopes, each acknowledged only once its event is stored."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from websockets.exceptions import ConnectionClosed

from clew.background import cancel_and_wait
from clew.errors import AccountRefused, NotSent
from clew.gateway.http import open_websocket

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

#: Seconds between two pings: without a pong the connection is closed.
_HEARTBEAT = 15.0
#: Seconds to close the connection.
_CLOSE_TIMEOUT = 2.0

Json = dict[str, Any]


class SocketModeConnection:
    """One connection; Slack asks for a new one every few hours."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._frames: asyncio.Queue[Json | None] = asyncio.Queue()
        #: Slack asked for a reconnect.
        self.is_ending = False

    async def __aenter__(self) -> Self:
        self._websocket = await open_websocket("Slack", self._url, ping_interval=_HEARTBEAT)
        self._reader_task = asyncio.create_task(self._read_frames(), name="slack:socket")
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await cancel_and_wait(self._reader_task)
        # A clean close if Slack answers at once; else the connection is dropped.
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await self._websocket.close()

    async def _read_frames(self) -> None:
        try:
            with suppress(ConnectionClosed):
                async for frame in self._websocket:
                    self._frames.put_nowait(json.loads(frame))
        finally:
            self._frames.put_nowait(None)

    async def read_envelopes(self, *, seconds: float) -> Sequence[Json]:
        """
        Return the envelopes that have arrived, or arrive within ``seconds``.

        :raises NotSent: if the connection is lost
        :raises AccountRefused: if Slack ends it permanently
        """
        found: list[Json] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                found += self._handle_frame(await self._frames.get())
        while not (self._frames.empty() or self.is_ending):
            found += self._handle_frame(self._frames.get_nowait())
        return found

    def _handle_frame(self, message: Json | None) -> Sequence[Json]:
        if message is None:
            # Also for the next reader.
            self._frames.put_nowait(None)
            raise NotSent("Slack closed the connection")
        if message.get("type") == "disconnect":
            if message.get("reason") == "link_disabled":
                raise AccountRefused("socket mode is off: enable it on the app's page")
            self.is_ending = True
        return [message] if "envelope_id" in message else []

    async def acknowledge(self, envelopes: Sequence[Json]) -> None:
        """Acknowledge stored envelopes; after a lost acknowledgement Slack sends them again."""
        with suppress(ConnectionClosed, OSError):
            for envelope in envelopes:
                await self._websocket.send(json.dumps({"envelope_id": envelope["envelope_id"]}))
