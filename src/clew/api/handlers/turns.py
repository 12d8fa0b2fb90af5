"""Operations on messages, turns, approvals, the queue and events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.api.operation_call import AnsweredBefore
from clew.api.rpc.subscriptions import start_subscription
from clew.core.double_text import parse_rule
from clew.core.grant import GrantTerm
from clew.core.ids import ApprovalId, InboxId
from clew.core.inbox import AcceptResult, InboxOutcome
from clew.wire import serializers
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.models import ApprovalShape, QueuedShape
from clew.wire.results import (
    Approvals,
    Cancelled,
    Edited,
    InputResult,
    Interrupted,
    Queue,
    Submitted,
    Subscribed,
    Unsubscribed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.api.operation_call import OperationCall
    from clew.api.rpc.client import RpcCall
    from clew.engine.request_service import FetchedFile
    from clew.wire import params


async def submit_message(call: OperationCall, given: params.SubmitParams) -> Submitted:
    """
    Store a message.

    :raises AnsweredBefore: if the first request with its key was answered already
    """
    rule = given.double_text or call.context.settings.session.double_text
    message = call.engine.new_input(
        given.text,
        double_text=parse_rule(rule, people=False),
        key=call.make_key(given),
        files=_prepare_files(call, given.attachments or ()),
    )
    accepted = await call.engine.submit(message, target=call.target)
    if accepted.answer is not None:
        raise AnsweredBefore(accepted.answer, status=accepted.status or 202)
    if accepted.outcome is InboxOutcome.REJECTED:
        raise CallFailed.from_code(ErrorCode.REJECTED)
    return Submitted(
        inbox_id=accepted.inbox_id,
        conversation=accepted.conversation_id,
        session=await call.engine.get_head(accepted.conversation_id),
        position=accepted.position,
    )


def _prepare_files(call: OperationCall, given: Sequence[params.Attachment]) -> list[FetchedFile]:
    return [
        call.engine.requests.prepare_file(
            name=one.name, media_type=one.media_type, content=_decode_content(one, place)
        )
        for place, one in enumerate(given)
    ]


def _decode_content(given: params.Attachment, place: int) -> bytes:
    try:
        return given.decode_content()
    except ValueError as error:
        param = f"attachments[{place}].data"
        raise CallFailed.from_code(ErrorCode.INVALID_PARAMS, str(error), param=param) from None


async def await_result(call: OperationCall, given: params.ResultParams) -> InputResult:
    end = await call.wait_for_input(
        AcceptResult(
            inbox_id=InboxId(given.inbox_id),
            conversation_id=call.conversation,
            duplicate=True,
            position=0,
        )
    )
    turn, view = end.turn, await call.engine.get_view(end.conversation)
    return InputResult(
        inbox_id=end.inbox_id,
        conversation=end.conversation,
        seq=view.conversation.last_seq,
        outcome=end.outcome.value,
        turn=None if turn is None else turn.id,
        turn_outcome=None if turn is None or turn.outcome is None else turn.outcome.value,
        text=end.text or (end.note or "" if end.outcome is InboxOutcome.EXECUTED else ""),
        code=None if turn is None else turn.error_code,
        note=end.note,
        cut=end.cut,
    )


async def interrupt_turn(call: OperationCall, given: params.Named) -> Interrupted:
    return Interrupted(stopping=await call.engine.request_stop(call.conversation))


async def list_approvals(call: OperationCall, given: params.Named) -> Approvals:
    found = await call.engine.list_approvals(call.conversation)
    return Approvals(
        items=[ApprovalShape.model_validate(serializers.serialize_approval(one)) for one in found]
    )


async def answer_approval(call: OperationCall, given: params.RespondParams) -> ApprovalShape:
    answered = await call.engine.answer_approval(
        ApprovalId(given.approval),
        yes=given.approve,
        by=call.context.viewer,
        note=given.note,
        keep=None if given.keep is None or not given.approve else GrantTerm(given.keep),
    )
    return ApprovalShape.model_validate(serializers.serialize_approval(answered))


async def list_queue(call: OperationCall, given: params.Named) -> Queue:
    found = await call.engine.list_queue(call.conversation)
    return Queue(
        items=[QueuedShape.model_validate(serializers.serialize_queued(item)) for item in found]
    )


async def cancel_input(call: OperationCall, given: params.CancelParams) -> Cancelled:
    return Cancelled(cancelled=await call.engine.cancel_input(InboxId(given.inbox_id)))


async def edit_input(call: OperationCall, given: params.EditParams) -> Edited:
    return Edited(edited=await call.engine.edit_input(InboxId(given.inbox_id), given.text))


async def subscribe_events(call: RpcCall, given: params.SubscribeParams) -> Subscribed:
    conversation = call.conversation
    view = await call.engine.get_view(conversation, viewer=call.context.viewer)
    call.engine.wake_conversation(conversation)
    head, seq = view.conversation.head, view.conversation.last_seq
    if given.after > seq:
        raise CallFailed.from_code(
            ErrorCode.INVALID_VALUE,
            f"the conversation has {seq} entries: subscribe after one of them",
            param="after",
        )
    # Events are collected from now on, and sent after this response.
    call.after_response.append(
        await start_subscription(
            call.client, conversation, after=given.after, live=given.live, session=head
        )
    )
    return Subscribed(conversation=conversation, session=head, after=given.after, seq=seq)


async def unsubscribe_events(call: RpcCall, given: params.Named) -> Unsubscribed:
    return Unsubscribed(unsubscribed=call.client.unsubscribe(call.conversation))
