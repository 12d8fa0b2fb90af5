"""Queued commands: what people and Clew ask of a conversation, run by the holder of the lease."""

from __future__ import annotations

import dataclasses
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import structlog

from clew.core.channel_events import strip_file_lines
from clew.core.double_text import DoubleText
from clew.core.entry import EntryKind, NewEntry
from clew.core.file_reading import MAX_WAIT, forget_failures, list_waiting
from clew.core.ids import InboxId, make_entry_id
from clew.core.inbox import END_COMMAND, FORGET_COMMAND, RELOAD_COMMAND, InboxKind, NewInput
from clew.core.route import Route
from clew.engine.compaction import Compacted
from clew.errors import UsageError
from clew.store.transactions import (
    branches,
    conversations,
    entries,
    inbox,
    leases,
    redactions,
    reloads,
    resets,
    rewinds,
    sessions,
)
from clew.store.transactions.channel_inbox import DELETED_COMMAND, EDIT_COMMAND
from clew.wording import format_end_notice

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clew.core.ids import ConversationId, SessionIdFactory
    from clew.core.inbox import InboxItem
    from clew.core.lease import Lease
    from clew.core.session import Session
    from clew.engine.services import EngineServices
    from clew.store.contract import Tx

    CommandHandler = Callable[[Tx, Lease, InboxItem, SessionIdFactory], Mapping[str, object]]

log = structlog.get_logger(__name__)

REWIND = "rewind"
UNDO = "undo"
RETRY = "retry"
RESTORE = "restore"
COMPRESS = "compress"

#: Format of entries that record the edit or deletion of a message on its platform.
CHANGE_FORMAT = "clew/change"


async def run_queued_command(means: EngineServices, lease: Lease, item: InboxItem) -> None:
    """Run one command, record its outcome and release the lease."""
    note: str | None = None
    if item.text == COMPRESS:
        note = await _run_compression(means, lease, item)
    await means.store.write(_execute_command, lease, item, means.session_ids, note=note)
    if item.text == END_COMMAND:
        means.hooks.emit_session_end(await means.store.read(inbox.get_item, item.id))
    log.info("command_executed", conversation=lease.conversation_id, command=item.text)


async def _run_compression(means: EngineServices, lease: Lease, item: InboxItem) -> str:
    done = await means.compaction.compact(
        lease.conversation_id,
        owner=lease.owner,
        lease=lease,
        focus=_parse_payload(item).get("focus"),
        on_demand=True,
        # Run again after a crash, it finds that it was done.
        operation=item.id,
    )
    told = {name: value for name, value in dataclasses.asdict(done).items() if name != "messages"}
    return json.dumps(told)


def parse_compaction_note(note: str) -> Compacted:
    """Return the result of a queued compaction from its note."""
    return Compacted(**json.loads(note))


def _execute_command(
    t: Tx, lease: Lease, item: InboxItem, session_ids: SessionIdFactory, *, note: str | None
) -> None:
    if note is not None:
        inbox.mark_executed(t, item.id, note=note)
    elif item.text == END_COMMAND:
        notice = format_end_notice(lease.conversation_id, _parse_payload(item)["reason"])
        resets.execute_end(t, lease, item, notice=notice)
    elif (carry := _HANDLERS.get(item.text)) is None:
        inbox.cancel_item(t, item.id, note=f"there is no command {item.text!r}")
    else:
        try:
            done = carry(t, lease, item, session_ids)
        except UsageError as error:
            inbox.cancel_item(t, item.id, note=str(error))
        else:
            inbox.mark_executed(t, item.id, note=json.dumps(done))
    leases.release_lease(t, lease)


def _handle_rewind(
    t: Tx, lease: Lease, item: InboxItem, session_ids: SessionIdFactory
) -> Mapping[str, object]:
    to: int = _parse_payload(item)["to"]
    return {"session": _rewind_to(t, lease, item, to, session_ids).id}


def _handle_undo(
    t: Tx, lease: Lease, item: InboxItem, session_ids: SessionIdFactory
) -> Mapping[str, object]:
    back: int = _parse_payload(item).get("back", 1)
    exchange = branches.find_recent_exchange(t, lease.conversation_id, back=back)
    session = _rewind_to(t, lease, item, exchange.first - 1, session_ids)
    return {"session": session.id, "text": exchange.text}


def make_retry_id(command: InboxId) -> InboxId:
    """Return the id of the input that a retry submits again."""
    return InboxId(f"{command}r")


def _handle_retry(
    t: Tx, lease: Lease, item: InboxItem, session_ids: SessionIdFactory
) -> Mapping[str, object]:
    conversation = lease.conversation_id
    exchange = branches.find_recent_exchange(t, conversation)
    session = _rewind_to(t, lease, item, exchange.first - 1, session_ids)
    kind = InboxKind.COMPLETION if exchange.caused else InboxKind.MESSAGE
    payload = "{}"
    if exchange.turn is not None:
        payload = inbox.get_turn_payload(t, exchange.turn, kind=kind)
    again = forget_failures(payload)
    inbox.accept_input(
        t,
        NewInput(
            id=make_retry_id(item.id),
            kind=kind,
            # Its files are attached again, each with its line.
            text=strip_file_lines(exchange.text, payload),
            double_text=DoubleText.STEER if exchange.caused else DoubleText.QUEUE,
            payload=again,
            hold=MAX_WAIT if list_waiting(again) else timedelta(),
        ),
        target=_resolve_target(t, conversation, _parse_payload(item).get("route")),
        new_conversation=conversation,
        session_ids=session_ids,
    )
    return {"session": session.id, "text": exchange.text}


def _resolve_target(
    t: Tx, conversation: ConversationId, route: str | None
) -> Route | ConversationId:
    """Return the target of the answer: the requesting route if it still leads here."""
    if route is None:
        return conversation
    parsed = Route.parse(route)
    here = conversations.resolve_route(t, parsed.key) == conversation
    return parsed if here else conversation


def _handle_restore(
    t: Tx, lease: Lease, item: InboxItem, session_ids: SessionIdFactory
) -> Mapping[str, object]:
    session = branches.undo_compaction(t, lease, operation=item.id, session_ids=session_ids)
    return {"session": session.id}


def _handle_edit(
    t: Tx, lease: Lease, item: InboxItem, session_ids: SessionIdFactory
) -> Mapping[str, object]:
    """Submit the last message again with its new text; for an older one append a note."""
    told, said = _parse_payload(item), _find_original(t, item)
    seq = None if said is None else entries.find_entry_seq(t, make_entry_id(said.id))
    if said is None or seq is None:
        raise UsageError("the edited message is no longer in this conversation")
    if not _is_last_message(t, lease.conversation_id, said):
        return _append_change_note(
            t, lease, item, f"Changed afterwards, entry {seq}: {told['text']}", seq
        )
    session = _rewind_to(t, lease, item, seq - 1, session_ids)
    again = NewInput(
        id=make_retry_id(item.id),
        text=told["text"],
        double_text=DoubleText.QUEUE,
        payload=json.dumps(told["said"]),
    )
    inbox.accept_input(
        t,
        again,
        target=_resolve_target(t, lease.conversation_id, told["route"]),
        new_conversation=lease.conversation_id,
        session_ids=session_ids,
    )
    inbox.relink_event(t, _get_original_event(item), again.id)
    return {"session": session.id, "text": told["text"]}


def _handle_deletion(
    t: Tx, lease: Lease, item: InboxItem, session_ids: SessionIdFactory
) -> Mapping[str, object]:
    said = _find_original(t, item)
    seq = None if said is None else entries.find_entry_seq(t, make_entry_id(said.id))
    if seq is None:
        raise UsageError("the deleted message is no longer in this conversation")
    return _append_change_note(
        t, lease, item, f"Deleted by its sender afterwards: entry {seq}", seq
    )


def _handle_forget(
    t: Tx, lease: Lease, item: InboxItem, session_ids: SessionIdFactory
) -> Mapping[str, object]:
    session = redactions.redact_context(
        t,
        lease,
        redactions.take_wanted(t, item),
        operation=item.id,
        session_ids=session_ids,
    )
    return {"session": None if session is None else session.id}


def _handle_reload(
    t: Tx, lease: Lease, item: InboxItem, session_ids: SessionIdFactory
) -> Mapping[str, object]:
    session = reloads.reload_context(t, lease, operation=item.id, session_ids=session_ids)
    return {"session": None if session is None else session.id}


def _get_original_event(item: InboxItem) -> tuple[str, str, str]:
    channel, account, event = _parse_payload(item)["original"]
    return channel, account, event


def _find_original(t: Tx, item: InboxItem) -> InboxItem | None:
    """Return the input of a message that was changed on its platform, if it is here."""
    said = inbox.find_input_of_event(t, _get_original_event(item))
    here = said is not None and said.conversation_id == item.conversation_id
    return said if here else None


def _is_last_message(t: Tx, conversation: ConversationId, said: InboxItem) -> bool:
    """Return whether nothing follows it in the model's context."""
    try:
        last = branches.find_recent_exchange(t, conversation)
    except UsageError:
        return False
    if said.turn_id is None or last.turn != said.turn_id:
        return False
    return inbox.find_last_input(t, said.turn_id) == said.id


def _append_change_note(
    t: Tx, lease: Lease, item: InboxItem, text: str, seq: int
) -> Mapping[str, object]:
    """Append a note about an older message, whose entry stays as it is."""
    head = sessions.get_head(t, lease.conversation_id)
    if not head.is_open:
        raise UsageError("the conversation is closed: its messages cannot be changed")
    draft = NewEntry(
        id=make_entry_id(item.id),
        kind=EntryKind.EVENT,
        role=None,
        text=text,
        format=CHANGE_FORMAT,
        message=json.dumps({"entry": seq, "change": item.text}),
    )
    entries.append_entries(t, lease, head.id, [draft])
    return {"entry": seq}


def _rewind_to(
    t: Tx, lease: Lease, item: InboxItem, to: int, session_ids: SessionIdFactory
) -> Session:
    return rewinds.rewind_context(t, lease, to=to, operation=item.id, session_ids=session_ids)


_HANDLERS: dict[str, CommandHandler] = {
    REWIND: _handle_rewind,
    UNDO: _handle_undo,
    RETRY: _handle_retry,
    RESTORE: _handle_restore,
    FORGET_COMMAND: _handle_forget,
    RELOAD_COMMAND: _handle_reload,
    EDIT_COMMAND: _handle_edit,
    DELETED_COMMAND: _handle_deletion,
}


def _parse_payload(item: InboxItem) -> dict[str, Any]:
    return json.loads(item.payload)
