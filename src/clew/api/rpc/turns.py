"""RPC methods on messages, turns, approvals, the queue and events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.api.rpc.subscriptions import start_subscription
from clew.core.double_text import parse_rule
from clew.core.ids import ApprovalId, InboxId
from clew.core.inbox import InboxOutcome
from clew.core.route import Route
from clew.engine.request_service import make_request_key
from clew.wire import serializers
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.models import ApprovalShape, QueuedShape
from clew.wire.results import (
    Approvals,
    Cancelled,
    Edited,
    Interrupted,
    Queue,
    Submitted,
    Subscribed,
    Unsubscribed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.api.rpc.context import RpcCall
    from clew.core.inbox import InboxItem
    from clew.engine.request_service import FetchedFile, IdempotencyKey
    from clew.wire import params


async def submit_message(call: RpcCall, given: params.SubmitParams) -> Submitted:
    target = call.engine.parse_target(given.session_id)
    if isinstance(target, Route):
        call.context.check_visible(target)
    else:
        target = await call.context.resolve_name(target)
    rule = given.double_text or call.context.settings.session.double_text
    message = call.engine.new_input(
        given.text,
        double_text=parse_rule(rule, people=False),
        key=_idempotency_key(call, given),
        files=_prepare_files(call, given.attachments or ()),
    )
    accepted = await call.engine.submit(message, target=target)
    if accepted.outcome is InboxOutcome.REJECTED:
        raise CallFailed.from_code(ErrorCode.REJECTED)
    head = (await call.engine.get_state(accepted.conversation_id)).head
    return Submitted(
        inbox_id=accepted.inbox_id,
        conversation=accepted.conversation_id,
        session=head,
        position=accepted.position,
    )


def _idempotency_key(call: RpcCall, given: params.SubmitParams) -> IdempotencyKey | None:
    if given.key is None:
        return None
    # Without the session: a repeated request may name a newer one of the same conversation.
    meant = given.model_dump_json(exclude={"key", "session_id"})
    return make_request_key(
        caller=call.context.caller, path="prompt.submit", key=given.key, request=meant.encode()
    )


def _prepare_files(call: RpcCall, given: Sequence[params.Attachment]) -> list[FetchedFile]:
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


async def interrupt_turn(call: RpcCall, given: params.Named) -> Interrupted:
    conversation = await call.context.resolve_name(given.conversation)
    return Interrupted(stopping=await call.engine.request_stop(conversation))


async def list_approvals(call: RpcCall, given: params.Named) -> Approvals:
    conversation = await call.context.resolve_name(given.conversation)
    found = await call.engine.list_approvals(conversation)
    return Approvals(
        items=[ApprovalShape.model_validate(serializers.serialize_approval(one)) for one in found]
    )


async def answer_approval(call: RpcCall, given: params.RespondParams) -> ApprovalShape:
    approval = ApprovalId(given.approval)
    asked = await call.engine.get_approval(approval)
    await call.context.resolve_name(asked.conversation_id)
    answered = await call.engine.answer_approval(
        approval, yes=given.approve, by=call.context.viewer, note=given.note
    )
    return ApprovalShape.model_validate(serializers.serialize_approval(answered))


async def list_queue(call: RpcCall, given: params.Named) -> Queue:
    conversation = await call.context.resolve_name(given.conversation)
    found = await call.engine.list_queue(conversation)
    return Queue(
        items=[QueuedShape.model_validate(serializers.serialize_queued(item)) for item in found]
    )


async def cancel_input(call: RpcCall, given: params.CancelParams) -> Cancelled:
    item = await _find_input(call, given.inbox_id)
    return Cancelled(cancelled=await call.engine.cancel_input(item.id))


async def edit_input(call: RpcCall, given: params.EditParams) -> Edited:
    item = await _find_input(call, given.inbox_id)
    return Edited(edited=await call.engine.edit_input(item.id, given.text))


async def _find_input(call: RpcCall, inbox_id: str) -> InboxItem:
    """
    Return a pending input.

    :raises NotFound: if there is none that the viewer may see
    """
    item = await call.engine.get_input(InboxId(inbox_id))
    await call.context.resolve_name(item.conversation_id)
    return item


async def subscribe_events(call: RpcCall, given: params.SubscribeParams) -> Subscribed:
    conversation = await call.context.resolve_name(given.conversation)
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
    conversation = await call.context.resolve_name(given.conversation)
    return Unsubscribed(unsubscribed=call.client.unsubscribe(conversation))
