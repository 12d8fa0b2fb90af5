"""Server-sent events: waiting for the next event, and sending it."""

from __future__ import annotations

import asyncio
import enum
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from starlette.responses import Response

from clew.api.caller import get_caller, wait_for_logout
from clew.background import cancel_and_wait

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping
    from types import TracebackType

    from starlette.types import Receive, Scope, Send

    from clew.api.caller import WebCaller

T = TypeVar("T")

#: Keeps a silent connection open.
KEEP_ALIVE_COMMENT = b": still here\n\n"
DONE_CHUNK = b"data: [DONE]\n\n"


def dump_compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def encode_data(value: object) -> bytes:
    """Encode an event without a name, as OpenAI sends them."""
    return f"data: {dump_compact(value)}\n\n".encode()


def encode_event(event: str, value: object, *, seq: int | None = None) -> bytes:
    """Encode an event with a name and, if a client can resume after it, an id."""
    head = f"id: {seq}\n" if seq is not None else ""
    return f"{head}event: {event}\ndata: {dump_compact(value)}\n\n".encode()


class Interruption(enum.Enum):
    """A reason why no event was read."""

    TIMEOUT = "silence"  #: no event within the timeout
    DISCONNECTED = "gone"  #: the client has closed the connection
    SHUTTING_DOWN = "leaving"  #: the server is stopping


class InterruptibleReader(Generic[T]):
    """Reader of events that also notices a disconnect and the server's shutdown."""

    def __init__(self, events: AsyncGenerator[T], receive: Receive, leaving: asyncio.Event) -> None:
        self._events, self._receive, self._shutdown = events, receive, leaving
        self._next: asyncio.Task[T] | None = None

    async def __aenter__(self) -> Self:
        self._disconnected = asyncio.create_task(
            _wait_for_disconnect(self._receive), name="client-gone"
        )
        self._stopped = asyncio.create_task(self._shutdown.wait(), name="server-leaving")
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        tasks = [
            task for task in (self._disconnected, self._stopped, self._next) if task is not None
        ]
        await cancel_and_wait(*tasks)
        await self._events.aclose()

    async def next_event(self, patience: float | None = None) -> T | Interruption:
        """
        Return the next event, or the interruption; ``TIMEOUT`` after ``patience`` seconds.

        :raises StopAsyncIteration: after the last event
        """
        if self._next is None:
            self._next = asyncio.ensure_future(anext(self._events))
        done, _ = await asyncio.wait(
            {self._next, self._disconnected, self._stopped},
            timeout=patience,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if self._next in done:
            found, self._next = self._next, None
            return found.result()
        if self._disconnected in done:
            return Interruption.DISCONNECTED
        return Interruption.SHUTTING_DOWN if self._stopped in done else Interruption.TIMEOUT


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def iter_chunks(chunks: Iterable[bytes]) -> AsyncGenerator[bytes]:
    """Iterate asynchronously over existing chunks."""
    for chunk in chunks:
        yield chunk


class EventStreamResponse(Response):
    """Response that sends the chunks of a generator, which itself notices a disconnect."""

    media_type = "text/event-stream"

    def __init__(
        self, chunks: AsyncGenerator[bytes], *, headers: Mapping[str, str] | None = None
    ) -> None:
        self._chunks = chunks
        self.status_code, self.background = 200, None
        self.init_headers(
            {"Cache-Control": "no-store", "X-Accel-Buffering": "no", **(headers or {})}
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        caller = get_caller(scope)
        await (self._send_chunks(send) if caller is None else self._send_while(caller, send))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_chunks(self, send: Send) -> None:
        async with aclosing(self._chunks):
            async for chunk in self._chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def _send_while(self, caller: WebCaller, send: Send) -> None:
        """Send the chunks for as long as a browser is logged in."""
        sending = asyncio.create_task(self._send_chunks(send), name="events")
        logout = asyncio.create_task(wait_for_logout(caller), name="login")
        try:
            await asyncio.wait({sending, logout}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                await sending
        finally:
            await cancel_and_wait(sending, logout)
