"""Carrying out a reply over HTTP, well or badly."""

from __future__ import annotations

import asyncio
import json
from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol

from clew.testing.provider import chat, messages, responses
from clew.testing.provider.answers import Answer, Frame, settle
from clew.testing.provider.failures import PAGE, failure
from clew.testing.provider.replies import (
    CutStream,
    EarlyEnd,
    Endless,
    Fail,
    Hang,
    Html,
    Raw,
    Reply,
    Slow,
    Spoken,
    StreamError,
    Text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clew.testing.provider.capture import Captured, Outcome
    from clew.testing.provider.http import Outbound
    from clew.testing.provider.request import Format, Request

EVENTS = "text/event-stream; charset=utf-8"
JSON = "application/json"


class Renderer(Protocol):
    """What the module of a format offers."""

    def body(self, answer: Answer, /) -> dict[str, object]: ...

    def frames(self, answer: Answer, request: Mapping[str, Any], /) -> Iterator[Frame]: ...

    def error_frame(self, error: Mapping[str, object], /) -> Frame: ...


RENDERERS: dict[Format, Renderer] = {
    "chat": chat,
    "responses": responses,
    "messages": messages,
}


class Player:
    """Answers one request as its script decided."""

    def __init__(self, request: Request, out: Outbound, captured: Captured) -> None:
        self._request = request
        self._out = out
        self._captured = captured
        self._renderer = RENDERERS[request.format]

    async def play(self, reply: Reply) -> Outcome:
        """Send the reply; cancelling leaves a broken answer."""
        self._captured.reply = type(reply).__name__
        match reply:
            case Slow():
                await asyncio.sleep(reply.seconds)
                return await self.play(reply.reply)
            case Fail():
                return await self._fail(reply)
            case Html():
                await self._out.send(reply.status, PAGE.encode(), "text/html")
            case Raw():
                await self._out.send_pieces(reply.status, reply.pieces, reply.kind)
            case Hang():
                await asyncio.Event().wait()
            case Endless():
                return await self._drone(reply)
            case CutStream() | EarlyEnd() | StreamError():
                return await self._break(reply)
            case _:
                await self._speak(self._settle(reply))
        return "answered"

    def _settle(self, reply: Spoken) -> Answer:
        answer = settle(reply, self._request)
        self._captured.text = answer.text
        self._captured.call_ids = tuple(call.id for call in answer.calls)
        return answer

    async def _fail(self, fail: Fail) -> Outcome:
        status, body = failure(fail, self._request)
        after = {} if fail.retry_after is None else {"retry-after": f"{fail.retry_after:g}"}
        await self._out.send_json(status, body, after)
        return "answered"

    async def _speak(self, answer: Answer) -> None:
        if self._request.stream:
            await self._stream(answer, self._frames(answer))
            await self._out.finish()
        else:
            await asyncio.sleep(answer.delay)
            await self._out.send_json(200, self._renderer.body(answer))

    async def _break(self, reply: CutStream | EarlyEnd | StreamError) -> Outcome:
        answer = self._settle(reply.reply)
        if not self._request.stream:
            return await self._break_body(reply, answer)
        await self._stream(answer, opening(self._frames(answer), reply.after))
        if isinstance(reply, CutStream):
            self._out.cut()
            return "cut"
        if isinstance(reply, StreamError):
            error = failure(Fail(reply.kind), self._request).body
            await self._out.write(self._renderer.error_frame(error).data)
        await self._out.finish()
        return "cut"

    async def _break_body(
        self, reply: CutStream | EarlyEnd | StreamError, answer: Answer
    ) -> Outcome:
        if isinstance(reply, StreamError):
            return await self._fail(Fail(reply.kind))
        body = self._renderer.body(answer.unfinished() if isinstance(reply, EarlyEnd) else answer)
        if isinstance(reply, EarlyEnd):
            await self._out.send_json(200, body)
        else:
            await self._out.send_half(json.dumps(body).encode(), JSON)
        return "cut"

    async def _stream(self, answer: Answer, frames: Iterator[Frame]) -> None:
        await self._out.open(EVENTS)
        for frame in frames:
            if frame.content and answer.delay:
                await asyncio.sleep(answer.delay)
            await self._out.write(frame.data)

    async def _drone(self, endless: Endless) -> Outcome:
        await self._out.open(EVENTS if self._request.stream else JSON)
        words = " ".join(repeat("again", endless.limit))
        answer = settle(Text(words, chunks=endless.limit), self._request)
        pieces = (frame.data for frame in opening(self._frames(answer), endless.limit))
        for piece in pieces if self._request.stream else repeat(" ", endless.limit):
            await self._out.write(piece)
            await asyncio.sleep(endless.interval)
        self._out.cut()
        return "cut"

    def _frames(self, answer: Answer) -> Iterator[Frame]:
        return self._renderer.frames(answer, self._request.raw)


def opening(frames: Iterator[Frame], after: int) -> Iterator[Frame]:
    """The frames up to the ``after``-th chunk, or to the last: never the end of an answer."""
    held: list[Frame] = []
    said = 0
    for frame in frames:
        if frame.content and said >= after:
            yield from held
            return
        held.append(frame)
        if frame.content:
            yield from held
            held, said = [], said + 1
    # What is held now is the end; without any chunk its first frame is the beginning, too.
    if not said:
        yield from held[:1]
