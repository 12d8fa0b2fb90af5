"""``/v1/responses``: the answer to one message, now or later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

from clew.api import outcome_mapping
from clew.api.idempotency import caller_id, idempotency_key
from clew.api.pending_completion import problem_after_storing
from clew.api.problems import Problem, invalid_request
from clew.api.request_files import prepare_files, prepare_history
from clew.api.responses.ids import parse_response_id, response_id
from clew.api.responses.request import parse_response_request
from clew.api.responses.resource import build_response, find_problem, input_item
from clew.api.responses.stream import stream_response
from clew.api.sse import InterruptibleReader, Interruption
from clew.core.double_text import parse_rule
from clew.core.events import InputCompleted
from clew.engine.request_service import ClientHistory, EarlierInput
from clew.engine.response_service import with_options
from clew.errors import ClewError, NotFound
from clew.record import replace

if TYPE_CHECKING:
    from clew.api.http_call import HttpCall
    from clew.api.responses.request import ResponseInput
    from clew.api.responses.schemas import ItemsQueryParams, ResponseQueryParams, ResponseRequest
    from clew.api.schemas import EmptyInput
    from clew.core.ids import ConversationId, InboxId
    from clew.core.inbox import AcceptResult, IdempotencyKey, NewInput
    from clew.core.route import Route
    from clew.engine.response_service import ResponseRecord


async def create_response(call: HttpCall, query: EmptyInput, body: ResponseRequest) -> Response:
    order = parse_response_request(body, models=call.server.models)
    key = idempotency_key(call.request)
    target = await _find_target(call, order)
    accepted = await call.engine.submit(
        with_options(_make_message(call, order, key), order.options), target=target
    )
    try:
        return await _answer(call, accepted, order, key)
    except ClewError as error:
        raise problem_after_storing(error, again=key is not None) from error


async def _answer(
    call: HttpCall, accepted: AcceptResult, order: ResponseInput, key: IdempotencyKey | None
) -> Response:
    if order.stream:
        return stream_response(call, await call.engine.responses.read(accepted.inbox_id))
    if not order.background:
        early = await _wait_for_end(call, accepted, order, key)
        if early is not None:
            return early
    record = await call.engine.responses.read(accepted.inbox_id)
    problem = None if order.background else find_problem(record)
    return _show(call, record) if problem is None else problem.to_response()


def _make_message(call: HttpCall, order: ResponseInput, key: IdempotencyKey | None) -> NewInput:
    files = prepare_files(call.engine.requests, order.files)
    rule = parse_rule(call.context.settings.session.double_text, people=False)
    return call.engine.new_input(order.text, double_text=rule, key=key, files=files)


async def _find_target(
    call: HttpCall, order: ResponseInput
) -> Route | ConversationId | ClientHistory | EarlierInput:
    if order.conversation is not None:
        _refuse_instructions(order, None)
        return await call.context.resolve_target(order.conversation)
    if order.previous is None:
        return ClientHistory(
            caller=caller_id(call.request),
            messages=prepare_history(call.engine.requests, order.history),
        )
    earlier = await _read_visible(call, parse_response_id(order.previous))
    await call.context.resolve_name(earlier.item.conversation_id)
    _refuse_instructions(order, earlier.options.get("instructions"))
    return EarlierInput(inbox_id=earlier.item.id)


def _refuse_instructions(order: ResponseInput, known: object) -> None:
    given = order.options["instructions"]
    if given is not None and given != known:
        raise invalid_request(
            "instructions: a conversation keeps the instructions with which it began; leave them "
            "out, or begin a new one",
            param="instructions",
            code="unsupported_parameter",
        )


async def _wait_for_end(
    call: HttpCall, accepted: AcceptResult, order: ResponseInput, key: IdempotencyKey | None
) -> Response | None:
    """Wait for the answer; return the response if there is none to wait for any more."""
    events = call.engine.stream_input(accepted, live=False)
    async with InterruptibleReader(events, call.request.receive, call.server.leaving.stop) as ear:
        while not isinstance(heard := await ear.next_event(), (InputCompleted, Interruption)):
            pass
    if heard is Interruption.DISCONNECTED:
        if key is None and not order.continues:
            await call.engine.requests.cancel_request(accepted.inbox_id)
        return Response(status_code=499)
    if heard is Interruption.SHUTTING_DOWN:
        stopping = replace(outcome_mapping.STOPPING, again=key is not None, stored=True)
        return stopping.to_response()
    return None


async def show_response(call: HttpCall, query: ResponseQueryParams, body: EmptyInput) -> Response:
    record = await _read_visible(call, call.response)
    if not query.stream:
        return _show(call, record)
    after = -1 if query.starting_after is None else query.starting_after
    return stream_response(call, record, after=after)


async def delete_response(call: HttpCall, query: EmptyInput, body: EmptyInput) -> Response:
    record = await _read_visible(call, call.response)
    await call.engine.responses.delete(record.item.id)
    return JSONResponse({"id": response_id(record.item.id), "object": "response", "deleted": True})


async def cancel_response(call: HttpCall, query: EmptyInput, body: EmptyInput) -> Response:
    record = await _read_visible(call, call.response)
    if record.end is None:
        if not await call.engine.requests.cancel_request(record.item.id):
            record = await call.engine.responses.read(record.item.id)
            if record.end is None and (record.turn is None or record.turn.stop is None):
                return _SHARED.to_response()
        await call.wait_for_input(record.item.as_accepted())
    return _show(call, await call.engine.responses.read(record.item.id))


_SHARED = Problem(
    status=409,
    message="other messages are answered by the same turn, so it goes on",
    code="conflict",
)


async def list_input_items(call: HttpCall, query: ItemsQueryParams, body: EmptyInput) -> Response:
    record = await _read_visible(call, call.response)
    item = input_item(record.item)
    return JSONResponse(list_json([] if query.after == item["id"] else [item], more=False))


def list_json(items: list[dict[str, object]], *, more: bool) -> dict[str, object]:
    """Return a page of items in OpenAI's format."""
    return {
        "object": "list",
        "data": items,
        "first_id": items[0]["id"] if items else "",
        "last_id": items[-1]["id"] if items else "",
        "has_more": more,
    }


async def _read_visible(call: HttpCall, inbox_id: InboxId) -> ResponseRecord:
    """
    Return a response that can be asked for.

    :raises NotFound: if there is none, or it was deleted, or was not to be stored
    """
    record = await call.engine.responses.read(inbox_id)
    if record.options.get("deleted") or record.options.get("store") is False:
        raise NotFound("response", response_id(inbox_id))
    return record


def _show(call: HttpCall, record: ResponseRecord) -> Response:
    return JSONResponse(build_response(record, models=tuple(call.server.models)))
