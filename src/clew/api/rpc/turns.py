"""The methods on what is said and done: messages, turns, questions, the queue, events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.api.rpc.subscriptions import subscribed
from clew.core.double_text import resolve_rule
from clew.core.ids import ApprovalId, InboxId
from clew.core.inbox import InboxOutcome
from clew.core.route import Route
from clew.engine.orders import make_request_key
from clew.wire import shapes
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.records import ApprovalShape, QueuedShape
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

    from clew.api.rpc.office import Call
    from clew.core.inbox import InboxItem
    from clew.engine.orders import FetchedFile, IdempotencyKey
    from clew.wire import params


async def submit(call: Call, given: params.SubmitParams) -> Submitted:
    target = call.engine.parse_target(given.session_id)
    if isinstance(target, Route):
        call.office.check(target)
    else:
        target = await call.office.resolve(target)
    rule = given.double_text or call.office.settings.session.double_text
    placed = await call.engine.requests.submit(
        given.text,
        target=target,
        double_text=resolve_rule(rule, people=False),
        key=_key(call, given),
        files=_files(call, given.attachments or ()),
    )
    accepted = placed.accepted
    if accepted.outcome is InboxOutcome.REJECTED:
        raise CallFailed.from_code(ErrorCode.REJECTED)
    head = (await call.engine.get_state(accepted.conversation_id)).head
    return Submitted(
        inbox_id=accepted.inbox_id,
        conversation=accepted.conversation_id,
        session=head,
        position=accepted.position,
    )


def _key(call: Call, given: params.SubmitParams) -> IdempotencyKey | None:
    if given.key is None:
        return None
    # The session is left out: who comes again may name a newer one of the same conversation.
    meant = given.model_dump_json(exclude={"key", "session_id"})
    return make_request_key(
        caller=call.office.caller, path="prompt.submit", key=given.key, request=meant.encode()
    )


def _files(call: Call, given: Sequence[params.Attachment]) -> list[FetchedFile]:
    return [
        call.engine.requests.prepare_file(
            name=one.name, media_type=one.media_type, content=_content(one, place)
        )
        for place, one in enumerate(given)
    ]


def _content(given: params.Attachment, place: int) -> bytes:
    try:
        return given.decode_content()
    except ValueError as error:
        param = f"attachments[{place}].data"
        raise CallFailed.from_code(ErrorCode.INVALID_PARAMS, str(error), param=param) from None


async def interrupt(call: Call, given: params.Named) -> Interrupted:
    conversation = await call.office.resolve(given.conversation)
    return Interrupted(stopping=await call.engine.request_stop(conversation))


async def approvals(call: Call, given: params.Named) -> Approvals:
    conversation = await call.office.resolve(given.conversation)
    found = await call.engine.list_approvals(conversation)
    return Approvals(
        items=[ApprovalShape.model_validate(shapes.serialize_approval(one)) for one in found]
    )


async def respond(call: Call, given: params.RespondParams) -> ApprovalShape:
    approval = ApprovalId(given.approval)
    asked = await call.engine.get_approval(approval)
    await call.office.resolve(asked.conversation_id)
    answered = await call.engine.answer_approval(
        approval, yes=given.approve, by=call.office.viewer, note=given.note
    )
    return ApprovalShape.model_validate(shapes.serialize_approval(answered))


async def queue(call: Call, given: params.Named) -> Queue:
    conversation = await call.office.resolve(given.conversation)
    found = await call.engine.list_queue(conversation)
    return Queue(
        items=[QueuedShape.model_validate(shapes.serialize_queued(item)) for item in found]
    )


async def cancel(call: Call, given: params.CancelParams) -> Cancelled:
    item = await _waiting(call, given.inbox_id)
    return Cancelled(cancelled=await call.engine.cancel_input(item.id))


async def edit(call: Call, given: params.EditParams) -> Edited:
    item = await _waiting(call, given.inbox_id)
    return Edited(edited=await call.engine.edit_input(item.id, given.text))


async def _waiting(call: Call, inbox_id: str) -> InboxItem:
    """:raises NotFound: if there is no such input in what may be seen here"""
    item = await call.engine.get_input(InboxId(inbox_id))
    await call.office.resolve(item.conversation_id)
    return item


async def subscribe(call: Call, given: params.SubscribeParams) -> Subscribed:
    conversation = await call.office.resolve(given.conversation)
    view = await call.engine.get_view(conversation, viewer=call.office.viewer)
    call.engine.wake_conversation(conversation)
    head, seq = view.conversation.head, view.conversation.last_seq
    if given.after > seq:
        raise CallFailed.from_code(
            ErrorCode.INVALID_VALUE,
            f"the conversation has {seq} entries: subscribe after one of them",
            param="after",
        )
    # Events are listened for from here on, and told once this is answered.
    call.then.append(
        await subscribed(
            call.client, conversation, after=given.after, live=given.live, session=head
        )
    )
    return Subscribed(conversation=conversation, session=head, after=given.after, seq=seq)


async def unsubscribe(call: Call, given: params.Named) -> Unsubscribed:
    conversation = await call.office.resolve(given.conversation)
    return Unsubscribed(unsubscribed=call.client.unsubscribe(conversation))
