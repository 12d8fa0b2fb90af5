"""Connection to Discord's gateway; resumes the session after the last stored dispatch."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from websockets.exceptions import ConnectionClosed

from clew.background import cancel_and_wait
from clew.errors import AccountRefused, NotSent
from clew.gateway.channels.discord.codec import INTENTS
from clew.gateway.http import open_websocket
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

#: Gateway opcodes.
_DISPATCH, _HEARTBEAT, _IDENTIFY, _RESUME, _RECONNECT = 0, 1, 2, 6, 7
_INVALID, _HELLO, _ACKNOWLEDGED = 9, 10, 11
#: A close code that leaves the session resumable; 1000 and 1001 would end it.
_RESUMABLE_CLOSE = 4000
#: Seconds to open the session, and to close the connection.
_OPEN_TIMEOUT, _CLOSE_TIMEOUT = 20.0, 2.0
#: Range of seconds to wait after Discord refused a session.
_INVALID_SESSION_PAUSE = (1.0, 5.0)

_FATAL_CLOSE_CODES = {
    4004: "Discord does not know the bot's token: create a new one in the developer portal",
    4010: "Discord rejects this shard",
    4011: "the bot is in too many guilds for one connection",
    4012: "Discord does not serve this version of its gateway any more",
    4013: "Discord does not know the intents of the bot",
    4014: "the bot may not read messages: enable the message content intent on the bot's page of "
    "the developer portal",
}
#: The session has ended, and its remaining events cannot be replayed.
_SESSION_LOST_CODES = (4007, 4009)

Json = dict[str, Any]


class DiscordSession(Record):
    """A gateway session that can be resumed after any interruption."""

    id: str
    url: str
    #: Sequence number of the last dispatch whose events are stored.
    seq: int


class GatewayConnection:
    """
    One connection to the gateway.

    ``session`` is the session to resume, and after connecting the current one.
    """

    def __init__(self, *, url: str, token: str, session: DiscordSession | None) -> None:
        self._token = token
        self._url = session.url if session is not None else url
        self.session = session
        #: A new session was started instead of resuming the old one.
        self.session_lost = False
        #: Discord asked for a reconnect.
        self.is_ending = False
        self._frames: asyncio.Queue[Json | None] = asyncio.Queue()
        self._heartbeat_acknowledged = True

    async def __aenter__(self) -> Self:
        url = f"{self._url.rstrip('/')}/?v=10&encoding=json"
        self._websocket = await open_websocket("Discord", url)
        self._reader_task = asyncio.create_task(self._read_frames(), name="discord:gateway")
        self._heartbeat_task: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(_OPEN_TIMEOUT):
                await self._open_session()
        except TimeoutError:
            await self._disconnect()
            raise NotSent(f"Discord's gateway did not answer in {_OPEN_TIMEOUT:g} s") from None
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
        tasks = (self._reader_task, self._heartbeat_task)
        await cancel_and_wait(*(task for task in tasks if task is not None))
        # A clean close if Discord answers at once; else the connection is dropped.
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await self._websocket.close(code=_RESUMABLE_CLOSE)

    # Opening

    async def _open_session(self) -> None:
        hello = await self._next_frame()
        if hello["op"] != _HELLO:
            raise NotSent("Discord's gateway said something else than hello")
        beat = hello["d"]["heartbeat_interval"] / 1000
        self._heartbeat_task = asyncio.create_task(
            self._send_heartbeats(beat), name="discord:heartbeat"
        )
        if self.session is not None and await self._try_resume(self.session):
            return
        await self._start_session()

    async def _try_resume(self, session: DiscordSession) -> bool:
        asked = {"token": self._token, "session_id": session.id, "seq": session.seq}
        await self._send_frame(_RESUME, asked)
        first = await self._next_frame()
        if first["op"] != _INVALID:
            # Replayed events, or that the replay is complete.
            self._push_back(first)
            return True
        self.session, self.session_lost = None, True
        await asyncio.sleep(random.uniform(*_INVALID_SESSION_PAUSE))
        return False

    async def _start_session(self) -> None:
        properties = {"os": sys.platform, "browser": "clew", "device": "clew"}
        asked = {"token": self._token, "intents": INTENTS, "properties": properties}
        await self._send_frame(_IDENTIFY, asked)
        ready = await self._next_frame()
        if ready["op"] == _INVALID:
            raise NotSent("Discord's gateway accepts no new session now")
        told: Json = ready["d"]
        self.session = DiscordSession(
            id=told["session_id"], url=told.get("resume_gateway_url") or self._url, seq=ready["s"]
        )

    def _push_back(self, first: Json) -> None:
        later = [self._frames.get_nowait() for _ in range(self._frames.qsize())]
        for message in (first, *later):
            self._frames.put_nowait(message)

    # Dispatches

    async def read_dispatches(self, *, seconds: float) -> Sequence[Json]:
        """
        Return the dispatches that have arrived, or arrive within ``seconds``.

        :raises NotSent: if the connection is lost
        :raises AccountRefused: if Discord ends it permanently
        """
        found: list[Json] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                found += self._handle_frame(await self._next_frame())
        while not (self._frames.empty() or self.is_ending):
            found += self._handle_frame(await self._next_frame())
        return found

    def confirm_stored(self, dispatches: Sequence[Json]) -> DiscordSession | None:
        """Confirm dispatches as stored and return the session to store; ``None`` if unchanged."""
        if not dispatches or self.session is None:
            return None
        self.session = replace(self.session, seq=dispatches[-1]["s"])
        return self.session

    def _handle_frame(self, message: Json) -> Sequence[Json]:
        match message["op"]:
            case op if op == _DISPATCH:
                return [message]
            case op if op == _RECONNECT:
                self.is_ending = True
            case op if op == _INVALID:
                self.is_ending = True
                if not message.get("d"):
                    self.session = None
            case _:
                pass
        return []

    async def _next_frame(self) -> Json:
        message = await self._frames.get()
        if message is None:
            # Also for the next reader.
            self._frames.put_nowait(None)
            raise self._close_error()
        return message

    def _close_error(self) -> NotSent | AccountRefused:
        code = self._websocket.close_code
        if code in _FATAL_CLOSE_CODES:
            return AccountRefused(_FATAL_CLOSE_CODES[code])
        if code in _SESSION_LOST_CODES:
            self.session, self.session_lost = None, True
        return NotSent(f"Discord closed the connection ({code})")

    async def _read_frames(self) -> None:
        try:
            with suppress(ConnectionClosed):
                async for frame in self._websocket:
                    await self._take_frame(json.loads(frame))
        finally:
            self._frames.put_nowait(None)

    async def _take_frame(self, message: Json) -> None:
        if message["op"] == _ACKNOWLEDGED:
            self._heartbeat_acknowledged = True
        elif message["op"] == _HEARTBEAT:
            await self._send_heartbeat()
        else:
            self._frames.put_nowait(message)

    # Heartbeats

    async def _send_heartbeats(self, seconds: float) -> None:
        await asyncio.sleep(seconds * random.random())
        while True:
            if not self._heartbeat_acknowledged:
                # A dead connection, which might stay open indefinitely.
                await self._websocket.close(code=_RESUMABLE_CLOSE)
                return
            self._heartbeat_acknowledged = False
            await self._send_heartbeat()
            await asyncio.sleep(seconds)

    async def _send_heartbeat(self) -> None:
        await self._send_frame(_HEARTBEAT, self.session.seq if self.session is not None else None)

    async def _send_frame(self, op: int, told: object) -> None:
        # A lost frame shows as a lost connection.
        with suppress(ConnectionClosed, OSError):
            await self._websocket.send(json.dumps({"op": op, "d": told}))
