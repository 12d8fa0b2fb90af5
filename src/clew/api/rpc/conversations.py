"""The methods on conversations: opened, looked at, named, branched, taken back, closed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.api.rpc.office import shape_of
from clew.core.ids import ConversationId
from clew.core.inbox import InboxOutcome
from clew.core.route import Route
from clew.core.text import sanitize_text
from clew.engine.commands import parse_compaction_note
from clew.errors import NotFound
from clew.wire import shapes
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.records import ConversationList, ConversationShape, EntryList, HitList, UsageShape
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

    from clew.api.rpc.office import Call, Office
    from clew.core.entry import Entry
    from clew.core.inbox import AcceptResult
    from clew.wire import params


async def open_(call: Call, given: params.OpenParams) -> Opened:
    target = call.engine.parse_target(given.conversation)
    if given.title is not None:
        target = await call.engine.titles.request_title(
            await allowed(call.office, target), given.title
        )
    attached = await _attach(call, target)
    return await _opened(call.office, attached)


async def _attach(call: Call, target: Route | ConversationId) -> ConversationId:
    """Attach to what a target means; a route that is new gets a conversation."""
    engine = call.engine
    if isinstance(target, Route):
        try:
            target = await call.office.resolve(target.key)
        except NotFound:
            done = await engine.clients.attach(await allowed(call.office, target), front="rpc")
            call.client.attached[done.conversation] = done.client
            return done.conversation
    else:
        target = await call.office.resolve(target)
    await call.client.attach(target)
    return target


async def allowed(office: Office, target: Route | ConversationId) -> Route | ConversationId:
    """:raises NotFound: if the target is nothing that may be seen here"""
    if isinstance(target, Route):
        office.check(target)
        return target
    return await office.resolve(target)


async def _opened(office: Office, conversation: ConversationId) -> Opened:
    return Opened(
        conversation=await office.shown(conversation), state=await office.state(conversation)
    )


async def status(call: Call, given: params.Named) -> Status:
    conversation = await call.office.resolve(given.conversation)
    view = await call.engine.get_view(conversation, viewer=call.office.viewer)
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
    opened = await _opened(call.office, conversation)
    return Status(conversation=opened.conversation, state=opened.state, usage=usage)


async def list_(call: Call, given: params.ListParams) -> ConversationList:
    page = await call.engine.list_views(
        viewer=call.office.viewer,
        title=given.query,
        cursor=given.cursor,
        limit=given.limit,
        adhoc=given.adhoc,
    )
    return ConversationList(items=list(map(shape_of, page.items)), next=page.next)


async def entries(call: Call, given: params.EntriesParams) -> EntryList:
    conversation = await call.office.resolve(given.conversation)
    limit = given.limit + 1
    if given.before is None:
        found = await call.engine.read_entries(conversation, after=given.after, limit=limit)
        items, more = found[: given.limit], len(found) == limit
        following = str(items[-1].seq) if more else None
    else:
        found = await call.engine.read_last_entries(conversation, before=given.before, limit=limit)
        items, more = found[-given.limit :], len(found) == limit
        following = str(items[0].seq) if more else None
    return _entry_list(items, following)


def _entry_list(items: Sequence[Entry], following: str | None) -> EntryList:
    return EntryList.model_validate(
        shapes.serialize_page([shapes.serialize_entry(entry) for entry in items], following)
    )


async def search(call: Call, given: params.SearchParams) -> HitList:
    found = await call.engine.search_messages(
        given.query, viewer=call.office.viewer, cursor=given.cursor, limit=given.limit
    )
    return HitList.model_validate(
        shapes.serialize_page([shapes.serialize_hit(hit) for hit in found.items], found.next)
    )


async def new(call: Call, given: params.NewParams) -> Opened:
    conversation = await call.engine.start_new_conversation(
        route_of(call.office, given.name, "name")
    )
    if given.title is not None:
        await call.engine.titles.request_title(conversation, given.title)
    await call.client.attach(conversation)
    return await _opened(call.office, conversation)


def route_of(office: Office, name: str, param: str) -> Route:
    """
    The route that a NAME, or a route's key, means.

    :raises CallFailed: if it is an id
    """
    target = office.engine.parse_target(sanitize_text(name))
    if isinstance(target, str):
        raise CallFailed.from_code(
            ErrorCode.INVALID_VALUE,
            f"{name!r} is an id: give a name that is to lead there",
            param=param,
        )
    office.check(target)
    return target


async def resume(call: Call, given: params.ResumeParams) -> Opened:
    route = route_of(call.office, given.name, "name")
    conversation = await call.office.resolve(given.conversation)
    await call.engine.sessions.resume_conversation(route, conversation, viewer=call.office.viewer)
    await call.client.attach(conversation)
    return await _opened(call.office, conversation)


async def rename(call: Call, given: params.RenameParams) -> ConversationShape:
    target = await allowed(call.office, call.engine.parse_target(given.conversation))
    if given.title is None:
        name = target.key if isinstance(target, Route) else target
        conversation = await call.office.resolve(name)
        await call.engine.rename_conversation(conversation, None, viewer=call.office.viewer)
    else:
        conversation = await call.engine.titles.request_title(target, given.title)
    return await call.office.shown(conversation)


async def branch(call: Call, given: params.BranchParams) -> ConversationShape:
    new_one = await call.engine.sessions.branch_conversation(
        await call.office.resolve(given.conversation),
        at=given.at,
        title=given.title,
        route=None if given.name is None else route_of(call.office, given.name, "name"),
        viewer=call.office.viewer,
    )
    return await call.office.shown(new_one)


async def rewind(call: Call, given: params.RewindParams) -> WentBack:
    conversation = await call.office.resolve(given.conversation)
    note = await done(call, await call.engine.sessions.queue_rewind(conversation, to=given.to))
    return WentBack(conversation=conversation, session=json.loads(note)["session"])


async def undo(call: Call, given: params.UndoParams) -> Undone:
    conversation = await call.office.resolve(given.conversation)
    note = await done(call, await call.engine.sessions.queue_undo(conversation, back=given.back))
    told = json.loads(note)
    return Undone(conversation=conversation, session=told["session"], text=told["text"])


async def retry(call: Call, given: params.Named) -> Retried:
    target = call.engine.parse_target(given.conversation)
    conversation = await call.office.resolve(given.conversation)
    filed, again = await call.engine.sessions.queue_retry(
        conversation, route=target if isinstance(target, Route) else None
    )
    told = json.loads(await done(call, filed))
    return Retried(
        conversation=conversation,
        session=told["session"],
        text=told["text"],
        inbox_id=again.inbox_id,
    )


async def done(call: Call, filed: AcceptResult) -> str:
    """
    Wait until what was filed is carried out, and give its note; others pass meanwhile.

    :raises CallFailed: if it could not be carried out
    """
    call.let_pass()
    end = await call.engine.wait_for_input(filed)
    if end.outcome is not InboxOutcome.EXECUTED:
        raise CallFailed.from_code(ErrorCode.CONFLICT, end.note or "it was not carried out")
    return end.note or ""


async def close(call: Call, given: params.Named) -> Closed:
    conversation = await call.office.resolve(given.conversation)
    call.client.unsubscribe(conversation)
    # Whoever closes what it has not opened says the same: nobody looks at it any more.
    client = await call.client.attach(conversation)
    del call.client.attached[conversation]
    ends = await call.engine.clients.close(client)
    return Closed(conversation=conversation, ends=ends)


async def delete(call: Call, given: params.Named) -> DeletedShape:
    conversation = await call.office.resolve(given.conversation)
    until = await call.engine.delete_conversation(conversation, viewer=call.office.viewer)
    return DeletedShape(deleted=conversation, undo_until=until and shapes.format_timestamp(until))


async def undelete(call: Call, given: params.UndeleteParams) -> ConversationShape:
    conversation = ConversationId(given.conversation)
    await call.engine.undelete_conversation(conversation, viewer=call.office.viewer)
    return await call.office.shown(conversation)


async def compact(call: Call, given: params.CompactParams) -> Compaction:
    conversation = await call.office.resolve(given.session_id)
    if given.dry_run:
        call.let_pass()
        preview = await call.engine.sessions.preview_compaction(conversation)
        return Compaction.model_validate(shapes.serialize_preview(preview))
    if given.undo:
        return await _restored(call, conversation)
    filed = await call.engine.sessions.queue_compaction(conversation, focus=given.focus)
    end = parse_compaction_note(await done(call, filed))
    if end.busy:
        raise CallFailed.from_code(ErrorCode.CONFLICT, end.note)
    return Compaction.model_validate(
        shapes.serialize_compaction(end, session=end.session_id, moved=end.moved)
    )


async def _restored(call: Call, conversation: ConversationId) -> Compaction:
    before = await call.engine.inspect_context(conversation)
    note = await done(call, await call.engine.sessions.queue_restore(conversation))
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
