"""``POST /v1/chat/completions``: one turn of a stored conversation, plain or streamed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.api.chat_request import parse_chat_request
from clew.api.chat_result import ChatResult
from clew.api.chat_stream import ChatStreamResponse
from clew.api.idempotency import caller_id, idempotency_key
from clew.api.pending_completion import PendingCompletion
from clew.api.sse import EventStreamResponse, InterruptibleReader, Interruption, iter_chunks
from clew.api.timeouts import DEFAULT_TIMEOUTS, ApiTimeouts
from clew.core.events import InputCompleted
from clew.engine.request_service import ClientHistory
from clew.errors import ClewError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from clew.api.chat_request import ChatCompletionInput
    from clew.api.schemas import ChatRequest, EmptyInput
    from clew.core.events import ConversationEvent
    from clew.core.ids import ConversationId
    from clew.core.route import Route
    from clew.engine.engine import Engine


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatCompletionsEndpoint:
    """The chat completions endpoint."""

    engine: Engine
    #: Model names under which the agent is offered; the first is the default.
    models: Sequence[str]
    #: The rule for messages that arrive during a turn, unless the client chooses one.
    double_text: str
    #: Set when the server stops and no longer waits for turns.
    shutdown: asyncio.Event
    pace: ApiTimeouts = DEFAULT_TIMEOUTS

    async def create_completion(
        self, request: Request, query: EmptyInput, body: ChatRequest
    ) -> Response:
        order = parse_chat_request(
            body, request.headers, models=self.models, double_text=self.double_text
        )
        key = idempotency_key(request)
        target = self._select_target(request, order)
        message = self.engine.new_input(order.text, double_text=order.double_text, key=key)
        accepted = await self.engine.submit(message, target=target)
        asking = PendingCompletion(
            requests=self.engine.requests, chat_input=order, accepted=accepted, key=key
        )
        if accepted.answer is not None:
            return _resend_stored(asking, accepted.answer)
        events = self.engine.requests.stream_events(accepted, live=order.stream)
        ear = InterruptibleReader(events, request.receive, self.shutdown)
        return (
            ChatStreamResponse(asking, ear, self.pace)
            if order.stream
            else await _respond_plain(asking, ear)
        )

    def _select_target(
        self, request: Request, order: ChatCompletionInput
    ) -> Route | ConversationId | ClientHistory:
        if order.conversation is None:
            return ClientHistory(caller=caller_id(request), messages=order.history)
        return self.engine.parse_target(order.conversation)


async def _respond_plain(
    asking: PendingCompletion, ear: InterruptibleReader[ConversationEvent | InputCompleted]
) -> Response:
    try:
        async with ear:
            end = await _wait_for_end(ear)
        if isinstance(end, InputCompleted):
            return (await asking.build_result(end)).plain_response
    except ClewError as error:
        raise asking.problem_for(error) from error
    return (
        await asking.on_disconnect()
        if end is Interruption.DISCONNECTED
        else asking.stopping_problem.to_response()
    )


async def _wait_for_end(
    ear: InterruptibleReader[ConversationEvent | InputCompleted],
) -> InputCompleted | Interruption:
    while True:
        heard = await ear.next_event()
        if isinstance(heard, (InputCompleted, Interruption)):
            return heard


def _resend_stored(asking: PendingCompletion, kept: str) -> Response:
    """Return the answer that the first request with this key got."""
    answer = ChatResult.deserialize(asking.encoder, kept)
    if not asking.chat_input.stream or not isinstance(answer.outcome, str):
        return answer.plain_response
    chunks = answer.build_chunks(with_usage=asking.chat_input.with_usage)
    return EventStreamResponse(iter_chunks(chunks), headers=answer.conversation.http_headers)
