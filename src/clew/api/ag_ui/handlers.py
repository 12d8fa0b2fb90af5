"""``/ag-ui``: a run of a conversation for a front-end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.api.ag_ui.interrupts import FollowedInput, answer_interrupts, require_answers
from clew.api.ag_ui.request import parse_run_request, refuse_other_run, select_new
from clew.api.ag_ui.stream import RunStream
from clew.api.idempotency import caller_id
from clew.api.request_files import prepare_files
from clew.api.sse import EventStreamResponse
from clew.core.double_text import parse_rule
from clew.core.inbox import InboxOutcome
from clew.core.route import Route
from clew.engine.run_service import as_run, get_message_id, make_run_id
from clew.errors import NotFound
from clew.wire.errors import CallFailed, ErrorCode

if TYPE_CHECKING:
    from starlette.responses import Response

    from clew.api.ag_ui.request import NewUserMessage, RunInput
    from clew.api.ag_ui.schemas import RunRequest
    from clew.api.http_call import HttpCall
    from clew.api.schemas import EmptyInput
    from clew.core.ids import ConversationId, InboxId
    from clew.core.inbox import AcceptResult, InboxItem


async def run_agent(call: HttpCall, query: EmptyInput, body: RunRequest) -> Response:
    order = parse_run_request(body)
    target = await call.context.resolve_target(order.thread)
    conversation = await _find_conversation(call, target)
    id = make_run_id(caller=caller_id(call.request), thread=order.thread, run=order.run)
    known = await call.engine.runs.find_input(id)
    if known is not None:
        return await _join(call, order, known, conversation)
    new = await _find_new_message(call, order, conversation)
    if new is not None:
        await require_answers(call, order.answers, conversation)
    followed = await answer_interrupts(call, order.answers, conversation)
    is_new = bool(followed)
    if new is not None:
        accepted = await _submit(call, new, id, target)
        conversation = accepted.conversation_id
        followed.append(FollowedInput(inbox_id=accepted.inbox_id))
        is_new = not accepted.duplicate
    if not followed and conversation is not None:
        active = await call.engine.runs.find_active_input(conversation)
        followed = [] if active is None else [FollowedInput(inbox_id=active)]
    return _stream(call, order, followed, conversation, is_new=is_new)


async def _join(
    call: HttpCall, order: RunInput, known: InboxItem, conversation: ConversationId | None
) -> Response:
    """Show a run that was begun before, from its start."""
    await call.context.resolve_name(known.conversation_id)
    refuse_other_run(order, get_message_id(known))
    followed = await answer_interrupts(call, order.answers, conversation)
    followed.append(FollowedInput(inbox_id=known.id))
    return _stream(call, order, followed, known.conversation_id, is_new=False)


def _stream(
    call: HttpCall,
    order: RunInput,
    followed: list[FollowedInput],
    conversation: ConversationId | None,
    *,
    is_new: bool,
) -> Response:
    if conversation is not None:
        call.engine.wake_conversation(conversation)
    stream = RunStream(call, order, followed, conversation=conversation, is_new=is_new)
    headers = {} if conversation is None else {"X-Clew-Conversation": conversation}
    return EventStreamResponse(stream.iter_frames(), headers=headers)


async def _find_conversation(
    call: HttpCall, target: Route | ConversationId
) -> ConversationId | None:
    if not isinstance(target, Route):
        return target
    try:
        return await call.context.resolve_name(target.key)
    except NotFound:
        return None


async def _find_new_message(
    call: HttpCall, order: RunInput, conversation: ConversationId | None
) -> NewUserMessage | None:
    """Return what the user wrote since the last answer, without what another run has taken."""
    if not order.sent or conversation is None:
        return select_new(order.sent, ())
    return select_new(order.sent, await call.engine.runs.read_history(conversation))


async def _submit(
    call: HttpCall, new: NewUserMessage, id: InboxId, target: Route | ConversationId
) -> AcceptResult:
    """Store a message; another run that has taken it stays its run."""
    files = prepare_files(call.engine.requests, new.files)
    rule = parse_rule(call.context.settings.session.double_text, people=False)
    message = call.engine.new_input(new.text, double_text=rule, files=files)
    accepted = await call.engine.submit(as_run(message, id, message_id=new.id), target=target)
    if accepted.outcome is InboxOutcome.REJECTED:
        raise CallFailed.from_code(ErrorCode.REJECTED)
    return accepted
