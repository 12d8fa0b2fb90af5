"""Player that sends a reply over HTTP, correctly or broken."""

from __future__ import annotations

import asyncio
import json
from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol

from clew.testing.provider import chat_format, messages_format, responses_format
from clew.testing.provider.error_responses import HTML_PAGE, failure_response
from clew.testing.provider.replies import (
    CompleteReply,
    CutStream,
    EarlyEnd,
    Endless,
    Fail,
    Hang,
    Html,
    Raw,
    Reply,
    Slow,
    StreamError,
    Text,
)
from clew.testing.provider.resolved_reply import ResolvedReply, SseFrame, resolve_reply

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clew.testing.provider.capture import CapturedRequest, RequestOutcome
    from clew.testing.provider.http import ResponseWriter
    from clew.testing.provider.request import ProviderRequest, WireFormat

STREAM_TYPE = "text/event-stream; charset=utf-8"
JSON_TYPE = "application/json"


class FormatRenderer(Protocol):
    """The interface of a format's module."""

    def render_body(self, answer: ResolvedReply, /) -> dict[str, object]: ...

    def render_frames(
        self, answer: ResolvedReply, request: Mapping[str, Any], /
    ) -> Iterator[SseFrame]: ...

    def render_error(self, error: Mapping[str, object], /) -> SseFrame: ...


RENDERERS: dict[WireFormat, FormatRenderer] = {
    "chat": chat_format,
    "responses": responses_format,
    "messages": messages_format,
}


class ReplyPlayer:
    """Sender of the scripted reply to one request."""

    def __init__(
        self, request: ProviderRequest, out: ResponseWriter, captured: CapturedRequest
    ) -> None:
        self._request = request
        self._writer = out
        self._captured = captured
        self._renderer = RENDERERS[request.format]

    async def send_reply(self, reply: Reply) -> RequestOutcome:
        """Send the reply; cancelling leaves it broken."""
        self._captured.reply = type(reply).__name__
        match reply:
            case Slow():
                await asyncio.sleep(reply.seconds)
                return await self.send_reply(reply.reply)
            case Fail():
                return await self._send_failure(reply)
            case Html():
                await self._writer.send_response(reply.status, HTML_PAGE.encode(), "text/html")
            case Raw():
                await self._writer.send_pieces(reply.status, reply.pieces, reply.kind)
            case Hang():
                await asyncio.Event().wait()
            case Endless():
                return await self._send_endless(reply)
            case CutStream() | EarlyEnd() | StreamError():
                return await self._send_broken(reply)
            case _:
                await self._send_resolved(self._resolve_reply(reply))
        return "answered"

    def _resolve_reply(self, reply: CompleteReply) -> ResolvedReply:
        answer = resolve_reply(reply, self._request)
        self._captured.text = answer.text
        self._captured.call_ids = tuple(call.id for call in answer.calls)
        return answer

    async def _send_failure(self, fail: Fail) -> RequestOutcome:
        status, body = failure_response(fail, self._request)
        after = {} if fail.retry_after is None else {"retry-after": f"{fail.retry_after:g}"}
        await self._writer.send_json(status, body, after)
        return "answered"

    async def _send_resolved(self, answer: ResolvedReply) -> None:
        if self._request.stream:
            await self._send_frames(answer, self._render_frames(answer))
            await self._writer.finish_stream()
        else:
            await asyncio.sleep(answer.delay)
            await self._writer.send_json(200, self._renderer.render_body(answer))

    async def _send_broken(self, reply: CutStream | EarlyEnd | StreamError) -> RequestOutcome:
        answer = self._resolve_reply(reply.reply)
        if not self._request.stream:
            return await self._send_broken_body(reply, answer)
        await self._send_frames(answer, leading_frames(self._render_frames(answer), reply.after))
        if isinstance(reply, CutStream):
            self._writer.cut_connection()
            return "cut"
        if isinstance(reply, StreamError):
            error = failure_response(Fail(reply.kind), self._request).body
            await self._writer.write_chunk(self._renderer.render_error(error).data)
        await self._writer.finish_stream()
        return "cut"

    async def _send_broken_body(
        self, reply: CutStream | EarlyEnd | StreamError, answer: ResolvedReply
    ) -> RequestOutcome:
        if isinstance(reply, StreamError):
            return await self._send_failure(Fail(reply.kind))
        body = self._renderer.render_body(
            answer.without_finish() if isinstance(reply, EarlyEnd) else answer
        )
        if isinstance(reply, EarlyEnd):
            await self._writer.send_json(200, body)
        else:
            await self._writer.send_half(json.dumps(body).encode(), JSON_TYPE)
        return "cut"

    async def _send_frames(self, answer: ResolvedReply, frames: Iterator[SseFrame]) -> None:
        await self._writer.start_stream(STREAM_TYPE)
        for frame in frames:
            if frame.content and answer.delay:
                await asyncio.sleep(answer.delay)
            await self._writer.write_chunk(frame.data)

    async def _send_endless(self, endless: Endless) -> RequestOutcome:
        await self._writer.start_stream(STREAM_TYPE if self._request.stream else JSON_TYPE)
        words = " ".join(repeat("again", endless.limit))
        answer = resolve_reply(Text(words, chunks=endless.limit), self._request)
        pieces = (
            frame.data for frame in leading_frames(self._render_frames(answer), endless.limit)
        )
        for piece in pieces if self._request.stream else repeat(" ", endless.limit):
            await self._writer.write_chunk(piece)
            await asyncio.sleep(endless.interval)
        self._writer.cut_connection()
        return "cut"

    def _render_frames(self, answer: ResolvedReply) -> Iterator[SseFrame]:
        return self._renderer.render_frames(answer, self._request.raw)


def leading_frames(frames: Iterator[SseFrame], after: int) -> Iterator[SseFrame]:
    """Yield the frames up to the ``after``-th chunk or the last one, never the end of a reply."""
    held: list[SseFrame] = []
    said = 0
    for frame in frames:
        if frame.content and said >= after:
            yield from held
            return
        held.append(frame)
        if frame.content:
            yield from held
            held, said = [], said + 1
    # The remaining frames are the end; without any chunk the first of them is also the start.
    if not said:
        yield from held[:1]
