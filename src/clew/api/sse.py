"""Server-sent events: waiting for what comes next, and sending it."""

from __future__ import annotations

import asyncio
import enum
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping
    from types import TracebackType

    from starlette.types import Receive, Scope, Send

T = TypeVar("T")

#: Keeps a silent connection open.
COMMENT = b": still here\n\n"
DONE = b"data: [DONE]\n\n"


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def data(value: object) -> bytes:
    """An event without a name, as OpenAI sends them."""
    return f"data: {compact(value)}\n\n".encode()


def named(event: str, value: object, *, seq: int | None = None) -> bytes:
    """An event with a name and, where a client may go on from here, an id."""
    head = f"id: {seq}\n" if seq is not None else ""
    return f"{head}event: {event}\ndata: {compact(value)}\n\n".encode()


class Heard(enum.Enum):
    """What may come instead of an event."""

    SILENCE = "silence"  #: nothing for as long as one would wait
    GONE = "gone"  #: the client has closed the connection
    LEAVING = "leaving"  #: the server is stopping


class Ear(Generic[T]):
    """Waits for events, and meanwhile for the client to go or the server to stop."""

    def __init__(self, events: AsyncGenerator[T], receive: Receive, leaving: asyncio.Event) -> None:
        self._events, self._receive, self._leaving = events, receive, leaving
        self._next: asyncio.Task[T] | None = None

    async def __aenter__(self) -> Self:
        self._gone = asyncio.create_task(_disconnected(self._receive), name="client-gone")
        self._stop = asyncio.create_task(self._leaving.wait(), name="server-leaving")
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        tasks = [task for task in (self._gone, self._stop, self._next) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await self._events.aclose()

    async def hear(self, patience: float | None = None) -> T | Heard:
        """
        The next event, or why there is none; ``SILENCE`` after ``patience`` seconds.

        :raises StopAsyncIteration: after the last event
        """
        if self._next is None:
            self._next = asyncio.ensure_future(anext(self._events))
        done, _ = await asyncio.wait(
            {self._next, self._gone, self._stop},
            timeout=patience,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if self._next in done:
            found, self._next = self._next, None
            return found.result()
        if self._gone in done:
            return Heard.GONE
        return Heard.LEAVING if self._stop in done else Heard.SILENCE


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def sent(chunks: Iterable[bytes]) -> AsyncGenerator[bytes]:
    """Chunks that are all there."""
    for chunk in chunks:
        yield chunk


class EventStream(Response):
    """Sends what a generator yields; the generator listens for the client's end itself."""

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
        async with aclosing(self._chunks):
            async for chunk in self._chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
