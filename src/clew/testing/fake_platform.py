"""Base of fake chat platforms: planned failures of calls, sockets, a log."""

from __future__ import annotations

import abc
import asyncio
import json
import math
import threading
import time
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any

from clew.record import Record
from clew.testing.fake_server import FakeServer
from clew.testing.faults import CallFault, FaultInjector
from clew.testing.provider.http import HttpRequest, ResponseWriter, WatchedReader
from clew.testing.websocket import FakeWebSocket

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

Json = dict[str, Any]


class FakeResponse(Record, kw_only=False):
    """The response to a call."""

    body: object = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    media: str = "application/json"


BAD_GATEWAY = FakeResponse(b"<html>Bad Gateway</html>", 502, media="text/html")


#: Seconds by which two clocks may differ.
_CLOCK_TOLERANCE = 0.05


class FakePlatform(FakeServer):
    """
    A chat platform on loopback.

    Tests call its methods from any thread; ``_lock`` guards the state. Calls that would
    change something on the platform fail according to ``faults``. With ``log``, each of
    them is written to that file as a line of JSON, for later evaluation.
    """

    def __init__(self, *, faults: FaultInjector | None = None, log: Path | None = None) -> None:
        super().__init__()
        self.faults = faults or FaultInjector()
        self._log = log
        self._lock = threading.RLock()
        self._counter = 0
        #: Number of calls, whatever their result.
        self.calls = 0
        #: Calls to a chat that came before the requested wait was over.
        self.intrusions = 0
        self._throttled_until: dict[str, float] = {}
        #: In order of opening.
        self._sockets: list[FakeWebSocket] = []

    def fail_next_call(self, *, lost: bool) -> None:
        """Cut the next call's connection: before its effect, or (``lost``) after it."""
        with self._lock:
            self.faults.queued.append(CallFault.LOST if lost else CallFault.CUT)

    def cut_sockets(self) -> None:
        """Cut every socket."""
        self._for_each_socket(lambda there: there.abort())

    def _for_each_socket(self, do: Callable[[FakeWebSocket], None]) -> None:
        def apply_all() -> None:
            for there in list(self._sockets):
                do(there)

        self._loop.call_soon_threadsafe(apply_all)

    async def _wait_for_news(self, seconds: float) -> None:
        """Wait for news, but no longer than ``seconds``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    @abc.abstractmethod
    def _is_exempt(self, http: HttpRequest) -> bool:
        """Return whether a call is exempt from faults."""

    @abc.abstractmethod
    def _handle_call(self, http: HttpRequest, *, throttled: bool) -> FakeResponse:
        """
        Answer a call, with the lock held.

        If ``throttled``, refuse a call to a chat for now.
        """

    async def _serve_socket(self, http: HttpRequest, there: FakeWebSocket) -> None:
        """Serve an open socket; it is closed when this returns."""
        return

    async def _respond(
        self, http: HttpRequest, reader: WatchedReader, writer: asyncio.StreamWriter
    ) -> bool:
        if http.headers.get("upgrade", "").lower() == "websocket":
            there = await FakeWebSocket.accept(http, reader, writer)
            self._sockets.append(there)
            try:
                await self._serve_socket(http, there)
            finally:
                self._sockets.remove(there)
            return False
        reply = self._response_to(http)
        if reply is None:
            return False
        out = ResponseWriter(writer, "fake")
        if isinstance(reply.body, bytes):
            await out.send_response(reply.status, reply.body, reply.media, reply.headers)
        else:
            await out.send_json(reply.status, reply.body, reply.headers)
        return True

    def _response_to(self, http: HttpRequest) -> FakeResponse | None:
        """Return the response; ``None`` if the connection breaks instead."""
        with self._lock:
            self.calls += 1
            fault = CallFault.NONE if self._is_exempt(http) else self.faults.next_fault()
            if fault is CallFault.CUT:
                return None
            if fault is CallFault.BROKEN:
                return BAD_GATEWAY
            reply = self._handle_call(http, throttled=fault is CallFault.THROTTLED)
            return None if fault is CallFault.LOST else reply

    def _throttle_seconds(self, chat: str, seconds: float) -> int:
        """Return the whole seconds to wait; count the call if it ignored an earlier wait."""
        now, wait = time.monotonic(), max(1, math.ceil(seconds))
        if now < self._throttled_until.get(chat, 0.0) - _CLOCK_TOLERANCE:
            self.intrusions += 1
        self._throttled_until[chat] = now + seconds
        return wait

    def _next_number(self) -> int:
        with self._lock:
            self._counter += 1
            return self._counter

    def _write_log(self, **line: object) -> None:
        if self._log is not None:
            with self._lock, self._log.open("a") as file:
                file.write(json.dumps({"at": time.time(), **line}) + "\n")
