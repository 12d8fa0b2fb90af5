"""``POST /v1/chat/completions``: one turn of a stored conversation, plain or streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.api.chat_request import parse_chat_request
from clew.api.chat_result import ChatResult
from clew.api.chat_stream import ChatStreamResponse
from clew.api.idempotency import caller_id, idempotency_key
from clew.api.pending_completion import PendingCompletion
from clew.api.request_files import prepare_files, prepare_history
from clew.api.sse import EventStreamResponse, InterruptibleReader, Interruption, iter_chunks
from clew.core.events import InputCompleted
from clew.engine.request_service import ClientHistory
from clew.errors import ClewError

if TYPE_CHECKING:
    from starlette.responses import Response

    from clew.api.chat_request import ChatCompletionInput
    from clew.api.http_call import HttpCall
    from clew.api.schemas import ChatRequest, EmptyInput
    from clew.core.events import ConversationEvent
    from clew.core.ids import ConversationId
    from clew.core.route import Route


async def create_completion(call: HttpCall, query: EmptyInput, body: ChatRequest) -> Response:
    request, server, requests = call.request, call.server, call.engine.requests
    rule = call.context.settings.session.double_text
    order = parse_chat_request(body, request.headers, models=server.models, double_text=rule)
    key = idempotency_key(request)
    target = await _select_target(call, order)
    files = prepare_files(call.engine.requests, order.files)
    message = call.engine.new_input(order.text, double_text=order.double_text, key=key, files=files)
    accepted = await call.engine.submit(message, target=target)
    asking = PendingCompletion(requests=requests, chat_input=order, accepted=accepted, key=key)
    if accepted.answer is not None:
        return _resend_stored(asking, accepted.answer)
    events = call.engine.stream_input(accepted, live=order.stream)
    ear = InterruptibleReader(events, request.receive, server.leaving.stop)
    return (
        ChatStreamResponse(asking, ear, server.timeouts)
        if order.stream
        else await _respond_plain(asking, ear)
    )


async def _select_target(
    call: HttpCall, order: ChatCompletionInput
) -> Route | ConversationId | ClientHistory:
    if order.conversation is None:
        return ClientHistory(
            caller=caller_id(call.request),
            messages=prepare_history(call.engine.requests, order.history),
        )
    return await call.context.resolve_target(order.conversation)


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
