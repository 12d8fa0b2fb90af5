"""Operations on conversations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.api.operation_context import conversation_model
from clew.api.rpc.client import FRONT_NAME
from clew.core.conversation import ConversationFilter
from clew.core.ids import ConversationId, TurnId
from clew.core.moments import parse_moment
from clew.core.route import Route
from clew.core.scope import Scope, can_see
from clew.core.session import USER_EXIT
from clew.engine.queued_commands import parse_compaction_note
from clew.errors import NotFound
from clew.wire import serializers
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.models import (
    ConversationList,
    ConversationShape,
    EntryList,
    HitList,
    LineageShape,
    ScopeList,
    ScopeShape,
    StateShape,
    UsageShape,
)
from clew.wire.results import (
    CallShape,
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
    from clew.api.operation_call import OperationCall
    from clew.api.rpc.client import RpcCall
    from clew.wire import params


async def open_conversation(call: RpcCall, given: params.OpenParams) -> Opened:
    target = call.target
    if given.title is not None:
        target = await call.engine.titles.request_title(target, given.title)
    return await _build_opened(call, await _attach_target(call, target))


async def _attach_target(call: RpcCall, target: Route | ConversationId) -> ConversationId:
    """Attach to the target's conversation; a new route gets one."""
    if isinstance(target, Route):
        try:
            target = await call.context.resolve_name(target.key)
        except NotFound:
            done = await call.engine.clients.attach(target, front=FRONT_NAME)
            call.client.attached[done.conversation] = done.client
            return done.conversation
    await call.client.attach_to(target)
    return target


async def _build_opened(call: OperationCall, conversation: ConversationId) -> Opened:
    standing = await call.engine.get_state(conversation, viewer=call.context.viewer)
    return Opened(
        conversation=await call.context.show_conversation(conversation),
        state=StateShape.model_validate(call.context.state_json(standing)),
    )


async def get_status(call: OperationCall, given: params.Named) -> Status:
    conversation = call.conversation
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
    opened = await _build_opened(call, conversation)
    return Status(conversation=opened.conversation, state=opened.state, usage=usage)


async def show_call(call: OperationCall, given: params.CallParams) -> CallShape:
    found = await call.engine.get_call_facts(call.conversation, TurnId(given.turn), given.call)
    return CallShape(
        tool=found.tool,
        effect=found.effect.value,
        runs=found.runs,
        status=None if found.status is None else found.status.value,
        why=found.reason,
        started_at=serializers.format_timestamp(found.started_at) or "",
        finished_at=serializers.format_timestamp(found.finished_at),
    )


async def show_lineage(call: OperationCall, given: params.Named) -> LineageShape:
    found, summaries = await call.engine.read_lineage(call.conversation, viewer=call.context.viewer)
    return LineageShape.model_validate(serializers.serialize_lineage(found, summaries))


async def list_conversations(call: OperationCall, given: params.ListParams) -> ConversationList:
    page = await call.engine.list_views(
        viewer=call.context.viewer,
        title=given.query,
        cursor=given.cursor,
        limit=given.limit,
        adhoc=given.adhoc,
        wanted=_make_filter(given),
    )
    return ConversationList(items=list(map(conversation_model, page.items)), next=page.next)


def _make_filter(given: params.ListParams) -> ConversationFilter:
    period = {
        name: parse_moment(name, text)
        for name, text in (("since", given.since), ("until", given.until))
        if text
    }
    return ConversationFilter(scope=given.scope, channel=given.channel, **period)


async def list_scopes(call: OperationCall, given: params.NoParams) -> ScopeList:
    found = await call.engine.list_scopes(viewer=call.context.viewer)
    items = [
        ScopeShape(
            scope=one.scope,
            conversations=one.conversations,
            updated_at=serializers.format_timestamp(one.updated_at) or "",
        )
        for one in found
    ]
    return ScopeList(items=items)


async def list_entries(call: OperationCall, given: params.EntriesParams) -> EntryList:
    conversation, limit = call.conversation, given.limit + 1
    if given.before is None:
        found = await call.engine.read_entries(conversation, after=given.after, limit=limit)
        items, more = found[: given.limit], len(found) == limit
        following = str(items[-1].seq) if more else None
    else:
        found = await call.engine.read_last_entries(conversation, before=given.before, limit=limit)
        items, more = found[-given.limit :], len(found) == limit
        following = str(items[0].seq) if more else None
    shown = [serializers.serialize_entry(entry) for entry in items]
    return EntryList.model_validate(serializers.serialize_page(shown, following))


async def search_messages(call: OperationCall, given: params.SearchParams) -> HitList:
    viewer = call.context.viewer
    if given.scope:
        wanted = Scope(given.scope)
        if not can_see(viewer, wanted):
            return HitList(items=[], next=None)
        viewer = wanted
    found = await call.engine.search_messages(
        given.query, viewer=viewer, cursor=given.cursor, limit=given.limit
    )
    shown = [serializers.serialize_hit(hit) for hit in found.items]
    return HitList.model_validate(serializers.serialize_page(shown, found.next))


async def new_conversation(call: RpcCall, given: params.NewParams) -> Opened:
    conversation = await call.engine.start_new_conversation(call.route)
    if given.title is not None:
        await call.engine.titles.request_title(conversation, given.title)
    await call.client.attach_to(conversation)
    return await _build_opened(call, conversation)


async def resume_conversation(call: RpcCall, given: params.ResumeParams) -> Opened:
    conversation = call.conversation
    await call.engine.sessions.resume_conversation(call.route, conversation)
    await call.client.attach_to(conversation)
    return await _build_opened(call, conversation)


async def rename_conversation(call: OperationCall, given: params.RenameParams) -> ConversationShape:
    target = call.target
    if given.title is None:
        name = target.key if isinstance(target, Route) else target
        conversation = await call.context.resolve_name(name)
        await call.engine.rename_conversation(conversation, None)
    else:
        conversation = await call.engine.titles.request_title(target, given.title)
    return await call.context.show_conversation(conversation)


async def branch_conversation(call: OperationCall, given: params.BranchParams) -> ConversationShape:
    new_one = await call.engine.sessions.branch_conversation(
        call.conversation, at=given.at, title=given.title, route=call.subject.route
    )
    return await call.context.show_conversation(new_one)


async def rewind_conversation(call: OperationCall, given: params.RewindParams) -> WentBack:
    filed = await call.engine.sessions.queue_rewind(call.conversation, to=given.to)
    note = await call.wait_for_command(filed)
    return WentBack(conversation=call.conversation, session=json.loads(note)["session"])


async def undo_exchanges(call: OperationCall, given: params.UndoParams) -> Undone:
    filed = await call.engine.sessions.queue_undo(call.conversation, back=given.back)
    told = json.loads(await call.wait_for_command(filed))
    return Undone(conversation=call.conversation, session=told["session"], text=told["text"])


async def retry_exchange(call: OperationCall, given: params.Named) -> Retried:
    target = call.engine.parse_target(given.conversation)
    filed, again = await call.engine.sessions.queue_retry(
        call.conversation, route=target if isinstance(target, Route) else None
    )
    told = json.loads(await call.wait_for_command(filed))
    return Retried(
        conversation=call.conversation,
        session=told["session"],
        text=told["text"],
        inbox_id=again.inbox_id,
    )


async def end_session(call: OperationCall, given: params.Named) -> ConversationShape:
    filed = await call.engine.queue_close(call.conversation, reason=USER_EXIT)
    await call.wait_for_command(filed)
    return await call.context.show_conversation(call.conversation)


async def leave_conversation(call: RpcCall, given: params.Named) -> Closed:
    conversation = call.conversation
    call.client.unsubscribe(conversation)
    # Closing without having opened means the same: the client has left.
    client = await call.client.attach_to(conversation)
    del call.client.attached[conversation]
    ends = await call.engine.clients.close(client)
    return Closed(conversation=conversation, ends=ends)


async def delete_conversation(call: OperationCall, given: params.Named) -> DeletedShape:
    until = await call.engine.delete_conversation(call.conversation)
    return DeletedShape(
        deleted=call.conversation, undo_until=until and serializers.format_timestamp(until)
    )


async def undelete_conversation(
    call: OperationCall, given: params.UndeleteParams
) -> ConversationShape:
    conversation = ConversationId(given.conversation)
    await call.engine.undelete_conversation(conversation, viewer=call.context.viewer)
    return await call.context.show_conversation(conversation)


async def compact_session(call: OperationCall, given: params.CompactParams) -> Compaction:
    sessions = call.engine.sessions
    if given.dry_run:
        call.release_order()
        preview = await sessions.preview_compaction(call.conversation)
        return Compaction.model_validate(serializers.serialize_preview(preview))
    if given.undo:
        return await _restore_session(call)
    filed = await sessions.queue_compaction(call.conversation, focus=given.focus)
    end = parse_compaction_note(await call.wait_for_command(filed))
    if end.busy:
        raise CallFailed.from_code(ErrorCode.CONFLICT, end.note)
    return Compaction.model_validate(
        serializers.serialize_compaction(end, session=end.session_id, moved=end.moved)
    )


async def _restore_session(call: OperationCall) -> Compaction:
    before = await call.engine.inspect_context(call.conversation)
    filed = await call.engine.sessions.queue_restore(call.conversation)
    note = await call.wait_for_command(filed)
    after = await call.engine.inspect_context(call.conversation)
    return Compaction(
        moved=True,
        session=json.loads(note)["session"],
        messages_before=len(before.lines),
        messages_after=len(after.lines),
        tokens_before=before.tokens,
        tokens_after=after.tokens,
        note="",
    )
