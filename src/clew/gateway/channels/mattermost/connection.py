"""Connection to Mattermost's WebSocket; a gap in its numbers ends it."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

from websockets.exceptions import ConnectionClosed

from clew.background import cancel_and_wait
from clew.errors import AccountRefused, NotSent
from clew.gateway.http import open_websocket

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

#: Seconds between two pings: without a pong the connection is closed.
_HEARTBEAT: Final = 15.0
#: Seconds to open the session, and to close the connection.
_OPEN_TIMEOUT, _CLOSE_TIMEOUT = 20.0, 2.0

Json = dict[str, Any]


class MattermostConnection:
    """One connection; after it was lost, what was missed is read from the channels."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token
        self._frames: asyncio.Queue[Json | None] = asyncio.Queue()
        self._next_seq: int | None = None

    async def __aenter__(self) -> Self:
        self._websocket = await open_websocket("Mattermost", self._url, ping_interval=_HEARTBEAT)
        self._reader_task = asyncio.create_task(self._read_frames(), name="mattermost:socket")
        try:
            async with asyncio.timeout(_OPEN_TIMEOUT):
                await self._authenticate()
        except TimeoutError:
            await self._disconnect()
            raise NotSent(f"Mattermost did not answer in {_OPEN_TIMEOUT:g} s") from None
        except BaseException:
            await self._disconnect()
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._disconnect()

    async def _disconnect(self) -> None:
        await cancel_and_wait(self._reader_task)
        # A clean close if the server answers at once; else the connection is dropped.
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await self._websocket.close()

    async def _authenticate(self) -> None:
        told = {"token": self._token}
        asked = {"seq": 1, "action": "authentication_challenge", "data": told}
        with suppress(ConnectionClosed, OSError):  # a lost frame shows as a lost connection
            await self._websocket.send(json.dumps(asked))
        while True:
            frame = self._check_frame(await self._frames.get())
            if frame.get("seq_reply") == 1 and frame.get("status") != "OK":
                raise AccountRefused(
                    "Mattermost does not accept the token: create one on the page of the bot"
                )
            if frame.get("event") == "hello":
                self._next_seq = int(frame.get("seq") or 0) + 1
                return

    async def read_frames(self, *, seconds: float) -> Sequence[Json]:
        """
        Return the events that have arrived, or arrive within ``seconds``.

        :raises NotSent: if the connection is lost, or an event was
        """
        found: list[Json] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                found.append(self._check_frame(await self._frames.get()))
        while not self._frames.empty():
            found.append(self._check_frame(self._frames.get_nowait()))
        return [frame for frame in found if "event" in frame]

    def _check_frame(self, frame: Json | None) -> Json:
        if frame is None:
            # Also for the next reader.
            self._frames.put_nowait(None)
            raise NotSent("Mattermost closed the connection")
        if self._next_seq is not None and "event" in frame and "seq" in frame:
            if frame["seq"] > self._next_seq:
                raise NotSent("Mattermost left out an event")
            self._next_seq = max(self._next_seq, int(frame["seq"]) + 1)
        return frame

    async def _read_frames(self) -> None:
        try:
            with suppress(ConnectionClosed):
                async for frame in self._websocket:
                    self._frames.put_nowait(json.loads(frame))
        finally:
            self._frames.put_nowait(None)
