"""Items of the line that are no messages: the holder of the lease carries them out."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import structlog

from clew.core.chat import strip_file_lines
from clew.core.double_text import DoubleText
from clew.core.entry import EntryKind, NewEntry
from clew.core.ids import InboxId
from clew.core.inbox import NewInput
from clew.core.route import Route
from clew.engine.compaction import Compacted
from clew.engine.turn_log import entry_of
from clew.errors import UsageError
from clew.store.transactions import (
    branches,
    conversations,
    entries,
    inbox,
    leases,
    resets,
    rewinds,
    sessions,
)
from clew.store.transactions.hearing import DELETED_COMMAND, EDIT_COMMAND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clew.core.ids import ConversationId, SessionIdFactory
    from clew.core.inbox import InboxItem
    from clew.core.lease import Lease
    from clew.core.session import Session
    from clew.engine.turns import Means
    from clew.store.contract import Tx

    Carry = Callable[[Tx, Lease, InboxItem, SessionIdFactory], Mapping[str, object]]

log = structlog.get_logger(__name__)

REWIND = "rewind"
UNDO = "undo"
RETRY = "retry"
RESTORE = "restore"
COMPRESS = "compress"

#: Entries that tell of a message which was changed or deleted on its platform.
CHANGE = "clew/change"


async def execute(means: Means, lease: Lease, item: InboxItem) -> None:
    """Carry out one item, record its outcome and let the lease go."""
    note: str | None = None
    if item.text == COMPRESS:
        note = await _compress(means, lease, item)
    await means.store.write(_carry_out, lease, item, means.session_ids, note=note)
    if item.text == resets.END_COMMAND:
        means.facts.ended(await means.store.read(inbox.get_item, item.id))
    log.info("command_executed", conversation=lease.conversation_id, command=item.text)


async def _compress(means: Means, lease: Lease, item: InboxItem) -> str:
    done = await means.compactions.compact(
        lease.conversation_id,
        owner=lease.owner,
        lease=lease,
        focus=_payload(item).get("focus"),
        on_demand=True,
        # Carried out again after a crash, it finds that it was done.
        operation=item.id,
    )
    told = {name: value for name, value in dataclasses.asdict(done).items() if name != "messages"}
    return json.dumps(told)


def compacted(note: str) -> Compacted:
    """What came of a compaction that was filed, from its note."""
    return Compacted(**json.loads(note))


def _carry_out(
    t: Tx, lease: Lease, item: InboxItem, session_ids: SessionIdFactory, *, note: str | None
) -> None:
    if note is not None:
        inbox.mark_executed(t, item.id, note=note)
    elif item.text == resets.END_COMMAND:
        resets.execute_end(t, lease, item)
    elif (carry := _CARRY.get(item.text)) is None:
        inbox.cancel_item(t, item.id, note=f"there is no command {item.text!r}")
    else:
        try:
            done = carry(t, lease, item, session_ids)
        except UsageError as error:
            inbox.cancel_item(t, item.id, note=str(error))
        else:
            inbox.mark_executed(t, item.id, note=json.dumps(done))
    leases.release_lease(t, lease)


def _rewind(
    t: Tx, lease: Lease, item: InboxItem, session_ids: SessionIdFactory
) -> Mapping[str, object]:
    to: int = _payload(item)["to"]
    return {"session": _back(t, lease, item, to, session_ids).id}


def _undo(
    t: Tx, lease: Lease, item: InboxItem, session_ids: SessionIdFactory
) -> Mapping[str, object]:
    back: int = _payload(item).get("back", 1)
    exchange = branches.find_recent_exchange(t, lease.conversation_id, back=back)
    session = _back(t, lease, item, exchange.first - 1, session_ids)
    return {"session": session.id, "text": exchange.text}


def retried(command: InboxId) -> InboxId:
    """The input that a retry hands in again."""
    return InboxId(f"{command}r")


def _retry(
    t: Tx, lease: Lease, item: InboxItem, session_ids: SessionIdFactory
) -> Mapping[str, object]:
    conversation = lease.conversation_id
    exchange = branches.find_recent_exchange(t, conversation)
    session = _back(t, lease, item, exchange.first - 1, session_ids)
    payload = "{}" if exchange.turn is None else inbox.get_turn_payload(t, exchange.turn)
    inbox.accept_input(
        t,
        NewInput(
            id=retried(item.id),
            # Its files come with it again, each with its line.
            text=strip_file_lines(exchange.text, payload),
            double_text=DoubleText.QUEUE,
            payload=payload,
        ),
        target=_place(t, conversation, _payload(item).get("route")),
        new_conversation=conversation,
        session_ids=session_ids,
    )
    return {"session": session.id, "text": exchange.text}


def _place(t: Tx, conversation: ConversationId, route: str | None) -> Route | ConversationId:
    """Where the answer is to go: the route that asked, if it still leads here."""
    if route is None:
        return conversation
    parsed = Route.parse(route)
    here = conversations.resolve_route(t, parsed.key) == conversation
    return parsed if here else conversation


def _restore(
    t: Tx, lease: Lease, item: InboxItem, session_ids: SessionIdFactory
) -> Mapping[str, object]:
    session = branches.undo_compaction(t, lease, operation=item.id, session_ids=session_ids)
    return {"session": session.id}


def _edit(
    t: Tx, lease: Lease, item: InboxItem, session_ids: SessionIdFactory
) -> Mapping[str, object]:
    """The last message is asked again with its new text; of an older one it is noted."""
    told, said = _payload(item), _said(t, item)
    seq = None if said is None else entries.find_entry_seq(t, entry_of(said.id))
    if said is None or seq is None:
        raise UsageError("the message that was changed is not here any more")
    if not _is_last(t, lease.conversation_id, said):
        return _note(t, lease, item, f"Changed afterwards, entry {seq}: {told['text']}", seq)
    session = _back(t, lease, item, seq - 1, session_ids)
    again = NewInput(
        id=retried(item.id),
        text=told["text"],
        double_text=DoubleText.QUEUE,
        payload=json.dumps(told["said"]),
    )
    inbox.accept_input(
        t,
        again,
        target=_place(t, lease.conversation_id, told["route"]),
        new_conversation=lease.conversation_id,
        session_ids=session_ids,
    )
    inbox.relink_event(t, _told_event(item), again.id)
    return {"session": session.id, "text": told["text"]}


def _deleted(
    t: Tx, lease: Lease, item: InboxItem, session_ids: SessionIdFactory
) -> Mapping[str, object]:
    said = _said(t, item)
    seq = None if said is None else entries.find_entry_seq(t, entry_of(said.id))
    if seq is None:
        raise UsageError("the message that was deleted is not here any more")
    return _note(t, lease, item, f"Deleted by its sender afterwards: entry {seq}", seq)


def _told_event(item: InboxItem) -> tuple[str, str, str]:
    channel, account, event = _payload(item)["original"]
    return channel, account, event


def _said(t: Tx, item: InboxItem) -> InboxItem | None:
    """What a message that was changed on its platform says here now."""
    said = inbox.find_input_of_event(t, _told_event(item))
    here = said is not None and said.conversation_id == item.conversation_id
    return said if here else None


def _is_last(t: Tx, conversation: ConversationId, said: InboxItem) -> bool:
    """Whether nothing was said after it in what the model sees."""
    try:
        last = branches.find_recent_exchange(t, conversation)
    except UsageError:
        return False
    if said.turn_id is None or last.turn != said.turn_id:
        return False
    return inbox.find_last_input(t, said.turn_id) == said.id


def _note(t: Tx, lease: Lease, item: InboxItem, text: str, seq: int) -> Mapping[str, object]:
    """Append what happened to an older message; what it said stays as it is."""
    head = sessions.get_head(t, lease.conversation_id)
    if not head.is_open:
        raise UsageError("the conversation is closed: what was said in it stays as it is")
    draft = NewEntry(
        id=entry_of(item.id),
        kind=EntryKind.EVENT,
        role=None,
        text=text,
        format=CHANGE,
        message=json.dumps({"entry": seq, "change": item.text}),
    )
    entries.append_entries(t, lease, head.id, [draft])
    return {"entry": seq}


def _back(t: Tx, lease: Lease, item: InboxItem, to: int, session_ids: SessionIdFactory) -> Session:
    return rewinds.rewind_context(t, lease, to=to, operation=item.id, session_ids=session_ids)


_CARRY: dict[str, Carry] = {
    REWIND: _rewind,
    UNDO: _undo,
    RETRY: _retry,
    RESTORE: _restore,
    EDIT_COMMAND: _edit,
    DELETED_COMMAND: _deleted,
}


def _payload(item: InboxItem) -> dict[str, Any]:
    return json.loads(item.payload)
