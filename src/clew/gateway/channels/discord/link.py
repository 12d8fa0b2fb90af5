"""The gateway: a session that is taken up again at what was stored last."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import aiohttp

from clew.errors import AccountRefused, NotSent
from clew.gateway.channels.discord.codec import INTENTS
from clew.gateway.channels.discord.transport import translated

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

#: Operations of the gateway.
_DISPATCH, _HEARTBEAT, _IDENTIFY, _RESUME, _RECONNECT = 0, 1, 2, 6, 7
_INVALID, _HELLO, _ACKNOWLEDGED = 9, 10, 11
#: An end after which the session can be taken up again; 1000 and 1001 would end it.
_GOING_ON = 4000
#: Seconds until the session is there, and for an end in order.
_OPEN, _CLOSE = 20.0, 2.0
#: Seconds that Discord asks to wait after it refused a session.
_REFUSED = (1.0, 5.0)

_ENDINGS = {
    4004: "Discord does not know the bot's token: the developer portal makes a new one",
    4010: "Discord does not take this shard",
    4011: "the bot is in too many guilds for one connection",
    4012: "Discord does not serve this version of its gateway any more",
    4013: "Discord does not know what the bot asks to hear",
    4014: "the bot may not hear what is said: switch on the message content intent on the bot's "
    "page of the developer portal",
}
#: The session is over, and what happened in it cannot be told again.
_LOST = (4007, 4009)

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """What Discord tells again from, after any break."""

    id: str
    url: str
    #: The last dispatch whose events are stored.
    seq: int


class Link:
    """One connection; ``session`` is the one to take up, and afterwards the one that there is."""

    def __init__(
        self, http: aiohttp.ClientSession, *, url: str, token: str, session: Session | None
    ) -> None:
        self._http, self._token = http, token
        self._url = session.url if session is not None else url
        self.session = session
        #: A new session began, though there was one to take up.
        self.lost = False
        #: Discord asked for another connection in its place.
        self.ends = False
        self._arrived: asyncio.Queue[Json | None] = asyncio.Queue()
        self._answered = True

    async def __aenter__(self) -> Self:
        with translated():
            self._there = await self._http.ws_connect(
                f"{self._url.rstrip('/')}/?v=10&encoding=json", max_msg_size=0
            )
        self._reading = asyncio.create_task(self._read(), name="discord:gateway")
        self._beating: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(_OPEN):
                await self._begin()
        except TimeoutError:
            await self._leave()
            raise NotSent(f"Discord's gateway did not answer in {_OPEN:g} s") from None
        except BaseException:
            await self._leave()
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._leave()

    async def _leave(self) -> None:
        for task in (self._reading, self._beating):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        # In order where Discord answers at once; else it is let go.
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE):
                await self._there.close(code=_GOING_ON)

    # Beginning

    async def _begin(self) -> None:
        hello = await self._next()
        if hello["op"] != _HELLO:
            raise NotSent("Discord's gateway said something else than hello")
        beat = hello["d"]["heartbeat_interval"] / 1000
        self._beating = asyncio.create_task(self._beat(beat), name="discord:heartbeat")
        if self.session is not None and await self._resumed(self.session):
            return
        await self._identify()

    async def _resumed(self, session: Session) -> bool:
        asked = {"token": self._token, "session_id": session.id, "seq": session.seq}
        await self._say(_RESUME, asked)
        first = await self._next()
        if first["op"] != _INVALID:
            # What is told again, or that there is nothing more.
            self._put_back(first)
            return True
        self.session, self.lost = None, True
        await asyncio.sleep(random.uniform(*_REFUSED))
        return False

    async def _identify(self) -> None:
        properties = {"os": sys.platform, "browser": "clew", "device": "clew"}
        asked = {"token": self._token, "intents": INTENTS, "properties": properties}
        await self._say(_IDENTIFY, asked)
        ready = await self._next()
        if ready["op"] == _INVALID:
            raise NotSent("Discord's gateway takes no new session now")
        told: Json = ready["d"]
        self.session = Session(
            id=told["session_id"], url=told.get("resume_gateway_url") or self._url, seq=ready["s"]
        )

    def _put_back(self, first: Json) -> None:
        later = [self._arrived.get_nowait() for _ in range(self._arrived.qsize())]
        for message in (first, *later):
            self._arrived.put_nowait(message)

    # What is told

    async def dispatches(self, *, seconds: float) -> Sequence[Json]:
        """
        Those that have come, or come within so many seconds.

        :raises NotSent: if the connection is lost
        :raises AccountRefused: if Discord ends it for good
        """
        found: list[Json] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                found += self._sorted(await self._next())
        while not (self._arrived.empty() or self.ends):
            found += self._sorted(await self._next())
        return found

    def stored(self, dispatches: Sequence[Json]) -> Session | None:
        """All of it is stored: from here on it is to be told again; ``None`` where nothing new."""
        if not dispatches or self.session is None:
            return None
        self.session = replace(self.session, seq=dispatches[-1]["s"])
        return self.session

    def _sorted(self, message: Json) -> Sequence[Json]:
        match message["op"]:
            case op if op == _DISPATCH:
                return [message]
            case op if op == _RECONNECT:
                self.ends = True
            case op if op == _INVALID:
                self.ends = True
                if not message.get("d"):
                    self.session = None
            case _:
                pass
        return []

    async def _next(self) -> Json:
        message = await self._arrived.get()
        if message is None:
            # For the next who asks, too.
            self._arrived.put_nowait(None)
            raise self._ended()
        return message

    def _ended(self) -> NotSent | AccountRefused:
        code = self._there.close_code
        if code in _ENDINGS:
            return AccountRefused(_ENDINGS[code])
        if code in _LOST:
            self.session, self.lost = None, True
        return NotSent(f"Discord closed the connection ({code})")

    async def _read(self) -> None:
        try:
            async for frame in self._there:
                if frame.type is aiohttp.WSMsgType.TEXT:
                    await self._take(json.loads(frame.data))
        finally:
            self._arrived.put_nowait(None)

    async def _take(self, message: Json) -> None:
        if message["op"] == _ACKNOWLEDGED:
            self._answered = True
        elif message["op"] == _HEARTBEAT:
            await self._say_alive()
        else:
            self._arrived.put_nowait(message)

    # Signs of life

    async def _beat(self, seconds: float) -> None:
        await asyncio.sleep(seconds * random.random())
        while True:
            if not self._answered:
                # A connection that hangs: it is not known when it would end by itself.
                await self._there.close(code=_GOING_ON)
                return
            self._answered = False
            await self._say_alive()
            await asyncio.sleep(seconds)

    async def _say_alive(self) -> None:
        await self._say(_HEARTBEAT, self.session.seq if self.session is not None else None)

    async def _say(self, op: int, told: object) -> None:
        # Where it does not arrive the end of the connection says so.
        with suppress(aiohttp.ClientError, OSError):
            await self._there.send_str(json.dumps({"op": op, "d": told}))
