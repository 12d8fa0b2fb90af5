"""RPC methods on conversations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.api.rpc.context import conversation_model
from clew.core.ids import ConversationId
from clew.core.inbox import InboxOutcome
from clew.core.route import Route
from clew.core.text import sanitize_text
from clew.engine.queued_commands import parse_compaction_note
from clew.errors import NotFound
from clew.wire import serializers
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.models import ConversationList, ConversationShape, EntryList, HitList, UsageShape
from clew.wire.results import (
    Closed,
    Compaction,
    DeletedShape,
    Opened,
    Retried,
    Status,
    Undone,
    WentBack,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.api.rpc.context import OperationCall, RpcCall, RpcContext
    from clew.core.entry import Entry
    from clew.core.inbox import AcceptResult
    from clew.wire import params


async def open_conversation(call: RpcCall, given: params.OpenParams) -> Opened:
    target = call.engine.parse_target(given.conversation)
    if given.title is not None:
        target = await call.engine.titles.request_title(
            await require_visible(call.context, target), given.title
        )
    attached = await _attach_target(call, target)
    return await _build_opened(call.context, attached)


async def _attach_target(call: RpcCall, target: Route | ConversationId) -> ConversationId:
    """Attach to the target's conversation; a new route gets one."""
    engine = call.engine
    if isinstance(target, Route):
        try:
            target = await call.context.resolve_name(target.key)
        except NotFound:
            done = await engine.clients.attach(
                await require_visible(call.context, target), front="rpc"
            )
            call.client.attached[done.conversation] = done.client
            return done.conversation
    else:
        target = await call.context.resolve_name(target)
    await call.client.attach_to(target)
    return target


async def require_visible(
    office: RpcContext, target: Route | ConversationId
) -> Route | ConversationId:
    """
    Return the target, resolved unless it is a route.

    :raises NotFound: if the viewer may not see it
    """
    if isinstance(target, Route):
        office.check_visible(target)
        return target
    return await office.resolve_name(target)


async def _build_opened(office: RpcContext, conversation: ConversationId) -> Opened:
    return Opened(
        conversation=await office.show_conversation(conversation),
        state=await office.read_state(conversation),
    )


async def get_status(call: RpcCall, given: params.Named) -> Status:
    conversation = await call.context.resolve_name(given.conversation)
    view = await call.engine.get_view(conversation, viewer=call.context.viewer)
    size = await call.engine.get_context_size(conversation)
    used = view.usage
    usage = UsageShape(
        input_tokens=used.input_tokens,
        cached_tokens=used.cached_tokens,
        output_tokens=used.output_tokens,
        cost=None if used.cost_micros is None else used.cost_micros / 1_000_000,
        context_tokens=size.tokens,
        context_window=size.window,
    )
    opened = await _build_opened(call.context, conversation)
    return Status(conversation=opened.conversation, state=opened.state, usage=usage)


async def list_conversations(call: OperationCall, given: params.ListParams) -> ConversationList:
    page = await call.engine.list_views(
        viewer=call.context.viewer,
        title=given.query,
        cursor=given.cursor,
        limit=given.limit,
        adhoc=given.adhoc,
    )
    return ConversationList(items=list(map(conversation_model, page.items)), next=page.next)


async def list_entries(call: OperationCall, given: params.EntriesParams) -> EntryList:
    conversation = await call.context.resolve_name(given.conversation)
    limit = given.limit + 1
    if given.before is None:
        found = await call.engine.read_entries(conversation, after=given.after, limit=limit)
        items, more = found[: given.limit], len(found) == limit
        following = str(items[-1].seq) if more else None
    else:
        found = await call.engine.read_last_entries(conversation, before=given.before, limit=limit)
        items, more = found[-given.limit :], len(found) == limit
        following = str(items[0].seq) if more else None
    return _build_entry_list(items, following)


def _build_entry_list(items: Sequence[Entry], following: str | None) -> EntryList:
    return EntryList.model_validate(
        serializers.serialize_page(
            [serializers.serialize_entry(entry) for entry in items], following
        )
    )


async def search_messages(call: OperationCall, given: params.SearchParams) -> HitList:
    found = await call.engine.search_messages(
        given.query, viewer=call.context.viewer, cursor=given.cursor, limit=given.limit
    )
    return HitList.model_validate(
        serializers.serialize_page(
            [serializers.serialize_hit(hit) for hit in found.items], found.next
        )
    )


async def new_conversation(call: RpcCall, given: params.NewParams) -> Opened:
    conversation = await call.engine.start_new_conversation(
        parse_route(call.context, given.name, "name")
    )
    if given.title is not None:
        await call.engine.titles.request_title(conversation, given.title)
    await call.client.attach_to(conversation)
    return await _build_opened(call.context, conversation)


def parse_route(office: RpcContext, name: str, param: str) -> Route:
    """
    Return the route for a NAME or the key of a route.

    :raises CallFailed: if it is an id
    """
    target = office.engine.parse_target(sanitize_text(name))
    if isinstance(target, str):
        raise CallFailed.from_code(
            ErrorCode.INVALID_VALUE,
            f"{name!r} is an id: give a name that is to lead there",
            param=param,
        )
    office.check_visible(target)
    return target


async def resume_conversation(call: RpcCall, given: params.ResumeParams) -> Opened:
    route = parse_route(call.context, given.name, "name")
    conversation = await call.context.resolve_name(given.conversation)
    await call.engine.sessions.resume_conversation(route, conversation, viewer=call.context.viewer)
    await call.client.attach_to(conversation)
    return await _build_opened(call.context, conversation)


async def rename_conversation(call: RpcCall, given: params.RenameParams) -> ConversationShape:
    target = await require_visible(call.context, call.engine.parse_target(given.conversation))
    if given.title is None:
        name = target.key if isinstance(target, Route) else target
        conversation = await call.context.resolve_name(name)
        await call.engine.rename_conversation(conversation, None, viewer=call.context.viewer)
    else:
        conversation = await call.engine.titles.request_title(target, given.title)
    return await call.context.show_conversation(conversation)


async def branch_conversation(call: OperationCall, given: params.BranchParams) -> ConversationShape:
    new_one = await call.engine.sessions.branch_conversation(
        await call.context.resolve_name(given.conversation),
        at=given.at,
        title=given.title,
        route=None if given.name is None else parse_route(call.context, given.name, "name"),
        viewer=call.context.viewer,
    )
    return await call.context.show_conversation(new_one)


async def rewind_conversation(call: RpcCall, given: params.RewindParams) -> WentBack:
    conversation = await call.context.resolve_name(given.conversation)
    note = await wait_for_command(
        call, await call.engine.sessions.queue_rewind(conversation, to=given.to)
    )
    return WentBack(conversation=conversation, session=json.loads(note)["session"])


async def undo_exchanges(call: RpcCall, given: params.UndoParams) -> Undone:
    conversation = await call.context.resolve_name(given.conversation)
    note = await wait_for_command(
        call, await call.engine.sessions.queue_undo(conversation, back=given.back)
    )
    told = json.loads(note)
    return Undone(conversation=conversation, session=told["session"], text=told["text"])


async def retry_exchange(call: RpcCall, given: params.Named) -> Retried:
    target = call.engine.parse_target(given.conversation)
    conversation = await call.context.resolve_name(given.conversation)
    filed, again = await call.engine.sessions.queue_retry(
        conversation, route=target if isinstance(target, Route) else None
    )
    told = json.loads(await wait_for_command(call, filed))
    return Retried(
        conversation=conversation,
        session=told["session"],
        text=told["text"],
        inbox_id=again.inbox_id,
    )


async def wait_for_command(call: RpcCall, filed: AcceptResult) -> str:
    """
    Wait for the queued command and return its note; other requests pass meanwhile.

    :raises CallFailed: if it failed
    """
    call.release_order()
    end = await call.engine.wait_for_input(filed)
    if end.outcome is not InboxOutcome.EXECUTED:
        raise CallFailed.from_code(ErrorCode.CONFLICT, end.note or "it was not carried out")
    return end.note or ""


async def close_conversation(call: RpcCall, given: params.Named) -> Closed:
    conversation = await call.context.resolve_name(given.conversation)
    call.client.unsubscribe(conversation)
    # Closing without having opened means the same: the client has left.
    client = await call.client.attach_to(conversation)
    del call.client.attached[conversation]
    ends = await call.engine.clients.close(client)
    return Closed(conversation=conversation, ends=ends)


async def delete_conversation(call: OperationCall, given: params.Named) -> DeletedShape:
    conversation = await call.context.resolve_name(given.conversation)
    until = await call.engine.delete_conversation(conversation, viewer=call.context.viewer)
    return DeletedShape(
        deleted=conversation, undo_until=until and serializers.format_timestamp(until)
    )


async def undelete_conversation(
    call: OperationCall, given: params.UndeleteParams
) -> ConversationShape:
    conversation = ConversationId(given.conversation)
    await call.engine.undelete_conversation(conversation, viewer=call.context.viewer)
    return await call.context.show_conversation(conversation)


async def compact_session(call: RpcCall, given: params.CompactParams) -> Compaction:
    conversation = await call.context.resolve_name(given.session_id)
    if given.dry_run:
        call.release_order()
        preview = await call.engine.sessions.preview_compaction(conversation)
        return Compaction.model_validate(serializers.serialize_preview(preview))
    if given.undo:
        return await _restore_session(call, conversation)
    filed = await call.engine.sessions.queue_compaction(conversation, focus=given.focus)
    end = parse_compaction_note(await wait_for_command(call, filed))
    if end.busy:
        raise CallFailed.from_code(ErrorCode.CONFLICT, end.note)
    return Compaction.model_validate(
        serializers.serialize_compaction(end, session=end.session_id, moved=end.moved)
    )


async def _restore_session(call: RpcCall, conversation: ConversationId) -> Compaction:
    before = await call.engine.inspect_context(conversation)
    note = await wait_for_command(call, await call.engine.sessions.queue_restore(conversation))
    after = await call.engine.inspect_context(conversation)
    return Compaction(
        moved=True,
        session=json.loads(note)["session"],
        messages_before=len(before.lines),
        messages_after=len(after.lines),
        tokens_before=before.tokens,
        tokens_after=after.tokens,
        note="",
    )
