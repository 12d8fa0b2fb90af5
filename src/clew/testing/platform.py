"""What fakes of chat platforms share: calls that fail as they are told to, sockets, a log."""

from __future__ import annotations

import abc
import asyncio
import json
import math
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.testing.provider.http import HttpRequest, Outbound, Watched
from clew.testing.serving import FakeServer
from clew.testing.telegram.faults import Fault, Faults
from clew.testing.websocket import WebSocket

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a call."""

    body: object = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    media: str = "application/json"


BROKEN = Reply(b"<html>Bad Gateway</html>", 502, media="text/html")


#: Seconds by which two clocks may differ.
_CLOSE = 0.05


class FakePlatform(FakeServer):
    """
    A platform on loopback.

    Tests call its methods from any thread; the state is guarded by ``_lock``. Calls that would
    change something on the platform fail as ``faults`` says. With ``log`` each of them is written
    there as a line of JSON, for whoever judges afterwards.
    """

    def __init__(self, *, faults: Faults | None = None, log: Path | None = None) -> None:
        super().__init__()
        self.faults = faults or Faults()
        self._log = log
        self._lock = threading.RLock()
        self._counter = 0
        #: How often it was called, whatever came of it.
        self.calls = 0
        #: Calls to a chat before the time was over that they had been asked to wait.
        self.intrusions = 0
        self._asked_to_wait: dict[str, float] = {}
        #: In the order in which they were opened.
        self._sockets: list[WebSocket] = []

    def fail_next(self, *, lost: bool) -> None:
        """The next call's connection is cut: before its effect, or (``lost``) after it."""
        with self._lock:
            self.faults.coming.append(Fault.LOST if lost else Fault.CUT)

    def cut(self) -> None:
        """Every socket breaks."""
        self._each_socket(lambda there: there.cut())

    def _each_socket(self, do: Callable[[WebSocket], None]) -> None:
        def each() -> None:
            for there in list(self._sockets):
                do(there)

        self._loop.call_soon_threadsafe(each)

    async def _until_news(self, seconds: float) -> None:
        """Or until they are over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    @abc.abstractmethod
    def _is_spared(self, http: HttpRequest) -> bool:
        """Whether no fault befalls a call."""

    @abc.abstractmethod
    def _carry_out(self, http: HttpRequest, *, throttled: bool) -> Reply:
        """Answer a call; the lock is held. ``throttled``: refuse it for now, if it is to a chat."""

    async def _opened(self, http: HttpRequest, there: WebSocket) -> None:
        """Somebody has opened a socket; it is closed when this returns."""
        return

    async def _respond(
        self, http: HttpRequest, reader: Watched, writer: asyncio.StreamWriter
    ) -> bool:
        if http.headers.get("upgrade", "").lower() == "websocket":
            there = await WebSocket.accepted(http, reader, writer)
            self._sockets.append(there)
            try:
                await self._opened(http, there)
            finally:
                self._sockets.remove(there)
            return False
        reply = self._replied(http)
        if reply is None:
            return False
        out = Outbound(writer, "fake")
        if isinstance(reply.body, bytes):
            await out.send(reply.status, reply.body, reply.media, reply.headers)
        else:
            await out.send_json(reply.status, reply.body, reply.headers)
        return True

    def _replied(self, http: HttpRequest) -> Reply | None:
        """The answer; ``None`` where the connection breaks instead."""
        with self._lock:
            self.calls += 1
            fault = Fault.NONE if self._is_spared(http) else self.faults.next()
            if fault is Fault.CUT:
                return None
            if fault is Fault.BROKEN:
                return BROKEN
            reply = self._carry_out(http, throttled=fault is Fault.THROTTLED)
            return None if fault is Fault.LOST else reply

    def _waits(self, chat: str, seconds: float) -> int:
        """Whole seconds that a caller is asked to wait; whoever was asked before intrudes."""
        now, wait = time.monotonic(), max(1, math.ceil(seconds))
        if now < self._asked_to_wait.get(chat, 0.0) - _CLOSE:
            self.intrusions += 1
        self._asked_to_wait[chat] = now + seconds
        return wait

    def _count(self) -> int:
        with self._lock:
            self._counter += 1
            return self._counter

    def _write(self, **line: object) -> None:
        if self._log is not None:
            with self._lock, self._log.open("a") as file:
                file.write(json.dumps({"at": time.time(), **line}) + "\n")
