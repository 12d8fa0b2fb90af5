"""Chat completion as a stream of chunks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.responses import Response

from clew.api import outcome_mapping, sse
from clew.api.openai_format import ConversationRef, error_chunk
from clew.api.problems import Problem
from clew.api.sse import EventStreamResponse, Interruption
from clew.api.stream_reconciler import StreamedText
from clew.core.entry import EntryKind, Role
from clew.core.events import Delta, DeltaKind, EntryAppended, InputCompleted, Retracted, Snapshot
from clew.errors import ClewError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Receive, Scope, Send

    from clew.api.chat_result import ChatResult
    from clew.api.pending_completion import PendingCompletion
    from clew.api.sse import InterruptibleReader
    from clew.api.timeouts import ApiTimeouts
    from clew.core.events import ConversationEvent


class ChatStreamResponse(Response):
    """
    A streamed chat completion.

    The stream starts with the first text, or after a delay; a failure before that has its
    own HTTP status. It ends with ``[DONE]``, or with an error chunk if the text sent is not
    the answer.
    """

    def __init__(
        self,
        asking: PendingCompletion,
        ear: InterruptibleReader[ConversationEvent | InputCompleted],
        pace: ApiTimeouts,
    ) -> None:
        super().__init__()
        self._pending, self._reader, self._timeouts = asking, ear, pace
        self._encoder, self._with_usage = asking.encoder, asking.chat_input.with_usage
        self._streamed = StreamedText()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._reader:
            try:
                response = await self._build_response()
            except ClewError as error:
                response = self._pending.problem_for(error).problem.to_response()
            await response(scope, receive, send)

    async def _build_response(self) -> Response:
        first = await self._wait_for_text()
        if first is Interruption.DISCONNECTED:
            return await self._pending.on_disconnect()
        if first is Interruption.SHUTTING_DOWN:
            return self._pending.stopping_problem.to_response()
        if isinstance(first, InputCompleted):
            place, problem = (
                ConversationRef.from_result(first),
                outcome_mapping.text_or_problem(first),
            )
            if isinstance(problem, Problem):
                return (await self._pending.build_result(first)).plain_response
        else:
            place = await self._pending.locate_answer()
        return EventStreamResponse(self._iter_chunks(first), headers=place.http_headers)

    async def _wait_for_text(self) -> ConversationEvent | InputCompleted | Interruption:
        """Return the first event that carries text, or the reason why there is none."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeouts.first_text
        while True:
            heard = await self._reader.next_event(max(deadline - loop.time(), 0))
            if isinstance(heard, (InputCompleted, Interruption)) or _event_text(heard):
                return heard

    async def _iter_chunks(
        self, heard: ConversationEvent | InputCompleted | Interruption
    ) -> AsyncGenerator[bytes]:
        yield self._encoder.first_chunk(with_usage=self._with_usage)
        try:
            while heard is not Interruption.DISCONNECTED:
                chunk, last = await self._encode_event(heard)
                if chunk:
                    yield chunk
                if last:
                    return
                heard = await self._reader.next_event(self._timeouts.keep_alive)
        except ClewError as error:
            yield error_chunk(self._pending.problem_for(error).problem)
        else:
            await self._pending.on_disconnect()

    async def _encode_event(
        self, heard: ConversationEvent | InputCompleted | Interruption
    ) -> tuple[bytes, bool]:
        """Return the chunk for an event, maybe empty, and True if the stream ends with it."""
        if heard is Interruption.TIMEOUT:
            return sse.KEEP_ALIVE_COMMENT, False
        answer = (
            await self._pending.build_result(heard) if isinstance(heard, InputCompleted) else None
        )
        said = self._text_for(heard, answer)
        if isinstance(said, Problem):
            return error_chunk(said), True
        piece = self._encoder.text_chunk(said, with_usage=self._with_usage) if said else b""
        if answer is None:
            return piece, False
        return piece + self._encoder.last_chunks(
            answer.usage, answer.conversation, with_usage=self._with_usage
        ), True

    def _text_for(
        self, heard: ConversationEvent | InputCompleted | Interruption, answer: ChatResult | None
    ) -> str | Problem:
        """Return the text to send, or the problem that ends the stream early."""
        if answer is not None:
            said = answer.outcome
            return said if isinstance(said, Problem) else self._reconcile_text(said)
        match heard:
            case Interruption.SHUTTING_DOWN:
                return self._pending.stopping_problem
            case Retracted(reason=reason) if self._streamed.has_partial_response:
                return outcome_mapping.retracted_problem(reason)
            case EntryAppended() if text := _event_text(heard):
                return self._reconcile_text(text)
            case Delta() | Snapshot() if text := _event_text(heard):
                return self._streamed.add_piece(text)
            case _:
                return ""

    def _reconcile_text(self, text: str) -> str | Problem:
        missing = self._streamed.reconcile(text)
        return outcome_mapping.INCOMPLETE_STREAM if missing is None else missing


def _event_text(event: ConversationEvent) -> str:
    """Return the answer text that an event carries."""
    match event:
        case Delta(kind=DeltaKind.TEXT, text=text) | Snapshot(text=text):
            return text
        case EntryAppended(entry=entry) if (
            entry.kind is EntryKind.MESSAGE and entry.role is Role.ASSISTANT
        ):
            return entry.text
        case _:
            return ""
