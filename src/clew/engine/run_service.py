"""Runs: an input and the turn that answers it, as messages for a client that keeps a copy."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from clew.agent import messages
from clew.agent.tool_results import extract_result_text
from clew.core.client_message import ClientMessage, ClientToolCall, make_response_id
from clew.core.entry import EntryKind, Role
from clew.core.ids import InboxId
from clew.core.inbox import InboxKind
from clew.core.rewound import find_rewound_spans, is_rewound
from clew.engine.input_stream import read_input_result
from clew.errors import NotFound
from clew.record import Record, replace
from clew.store.transactions import (
    approvals,
    entries,
    inbox,
    rewinds,
    runs,
    turn_queries,
    usage,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clew.core.approval import Approval
    from clew.core.entry import Entry
    from clew.core.events import InputCompleted
    from clew.core.ids import ConversationId, EntryId, TurnId
    from clew.core.inbox import InboxItem, NewInput
    from clew.core.turn import Turn
    from clew.store.contract import Store, Tx
    from clew.store.transactions.usage import TokenUsage

#: The newest entries of a conversation that a client is shown.
HISTORY_SIZE = 500
#: Above every seq of a log.
_END = 10**15


class RunRecord(Record):
    """An accepted input with everything that is stored of its turn, read at one moment."""

    item: InboxItem
    turn: Turn | None
    #: The messages of the turn above the seq that was asked for, in order.
    messages: tuple[ClientMessage, ...]
    #: The number of its responses that are stored.
    responses: int
    #: What waits for an answer in the conversation.
    approvals: tuple[Approval, ...]
    #: ``None`` until it has ended.
    end: InputCompleted | None
    usage: TokenUsage | None


def make_run_id(*, caller: str, thread: str, run: str) -> InboxId:
    """Return the id of a run's input: the same whenever the same run is asked for."""
    told = json.dumps([caller, thread, run]).encode()
    return InboxId(f"inb_{hashlib.sha256(told).hexdigest()[:28]}")


def as_run(message: NewInput, id: InboxId, *, message_id: str) -> NewInput:
    """Return a message as the input of a run, with the id that its client gave it."""
    payload = runs.write_message_id(message.payload, message_id)
    return replace(message, id=id, payload=payload, message_id=message_id)


def get_message_id(item: InboxItem) -> str | None:
    """Return the id that its client gave the message of an input, if it gave one."""
    return runs.read_message_id(item.payload)


class RunService:
    """The runs of clients that keep a copy of the conversation."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find_input(self, id: InboxId) -> InboxItem | None:
        """Return the input of a run, if it was accepted."""
        return await self._store.read(inbox.find_item, id)

    async def find_active_input(self, conversation: ConversationId) -> InboxId | None:
        """Return the first input of the unfinished turn, or else the first that waits."""
        return await self._store.read(_find_active_input, conversation)

    async def find_asking_input(self, approval: Approval) -> tuple[InboxId, int]:
        """
        Return the first input of the turn that asked, and the seq of the response with the call.

        :raises NotFound: if nothing is stored of it any more
        """
        return await self._store.read(_find_asking_input, approval)

    async def read(self, id: InboxId, *, after: int = 0) -> RunRecord:
        """
        Return the state of a run with its messages above a seq, read at one moment.

        :raises NotFound: if there is no such input
        """
        return await self._store.read(_read_run, id, after=after)

    async def read_history(
        self, conversation: ConversationId, *, before: int = _END
    ) -> Sequence[ClientMessage]:
        """Return the newest messages of a conversation below a seq, without those rewound."""
        return await self._store.read(_read_history, conversation, before=before)


def _find_active_input(t: Tx, conversation: ConversationId) -> InboxId | None:
    turn = turn_queries.find_unfinished_turn(t, conversation)
    if turn is not None:
        return runs.find_first_input(t, turn.id)
    waiting = inbox.list_open_items(t, conversation)
    return next((item.id for item in waiting if item.kind is InboxKind.MESSAGE), None)


def _find_asking_input(t: Tx, approval: Approval) -> tuple[InboxId, int]:
    turn = turn_queries.get_turn(t, approval.turn_id)
    found = runs.find_first_input(t, turn.id)
    first, last = runs.read_turn_span(t, turn)
    asking = [
        entry
        for entry in entries.read_entries(t, turn.conversation_id, first=first, last=last)
        if entry.turn_id == turn.id and entry.calls
    ]
    if found is None or not asking:
        raise NotFound("turn of the approval", approval.id)
    # A call inside of another one is in no response.
    own = [entry.seq for entry in asking if approval.call_id in entry.calls]
    return found, own[0] if own else asking[-1].seq


def _read_run(t: Tx, id: InboxId, *, after: int) -> RunRecord:
    item = inbox.get_item(t, id)
    turn = inbox.find_turn_of_item(t, id)
    return RunRecord(
        item=item,
        turn=turn,
        messages=() if turn is None else tuple(_read_turn(t, turn, after)),
        responses=0 if turn is None else _count_responses(t, turn, before=_END),
        approvals=tuple(approvals.list_open_approvals(t, item.conversation_id)),
        end=read_input_result(t, id),
        usage=None if turn is None else usage.sum_usage(t, turn.conversation_id, turn=turn.id),
    )


def _count_responses(t: Tx, turn: Turn, *, before: int) -> int:
    return runs.count_responses(t, turn.conversation_id, turn.id, before=before)


def _read_turn(t: Tx, turn: Turn, after: int) -> Iterator[ClientMessage]:
    first, last = runs.read_turn_span(t, turn)
    first = max(first, after + 1)
    found = [
        entry
        for entry in entries.read_entries(t, turn.conversation_id, first=first, last=last)
        if entry.turn_id == turn.id
    ]
    ids = runs.read_message_ids(t, turn.conversation_id, first=first, last=last)
    return _iter_messages(found, ids, counted=_count_responses(t, turn, before=first))


def _read_history(t: Tx, conversation: ConversationId, *, before: int) -> list[ClientMessage]:
    found = entries.read_entries_before(t, conversation, before=before, limit=HISTORY_SIZE)
    if not found:
        return []
    first, turn = found[0].seq, found[0].turn_id
    counted = 0 if turn is None else runs.count_responses(t, conversation, turn, before=first)
    ids = runs.read_message_ids(t, conversation, first=first, last=found[-1].seq)
    gone = find_rewound_spans(rewinds.list_rewinds(t, conversation))
    return [
        message
        for message in _iter_messages(found, ids, counted=counted)
        if not is_rewound(message.seq, gone)
    ]


def _iter_messages(
    found: Sequence[Entry], ids: Mapping[EntryId, str], *, counted: int
) -> Iterator[ClientMessage]:
    """Yield the messages that people see; ``counted`` responses of the first turn precede."""
    turn: TurnId | None = found[0].turn_id if found else None
    for entry in found:
        if entry.turn_id != turn:
            turn, counted = entry.turn_id, 0
        if entry.kind is not EntryKind.MESSAGE or entry.role is None or entry.is_caused:
            continue
        yield _make_message(entry, ids, counted)
        counted += entry.role is Role.ASSISTANT


def _make_message(entry: Entry, ids: Mapping[EntryId, str], number: int) -> ClientMessage:
    told = messages.load_message(entry.message) if entry.calls or entry.answers else None
    id = ids.get(entry.id, f"msg_{entry.id.removeprefix('ent_')}")
    if entry.role is Role.ASSISTANT and entry.turn_id is not None:
        id = make_response_id(entry.turn_id, number)
    assert entry.role is not None
    return ClientMessage(
        seq=entry.seq,
        id=id,
        turn=entry.turn_id,
        role=entry.role,
        text="" if entry.role is Role.TOOL else entry.text,
        number=number,
        calls=()
        if told is None
        else tuple(
            ClientToolCall(id=call.call_id, tool=call.tool, args=call.args)
            for call in messages.extract_tool_calls(told)
        ),
        results=()
        if told is None
        else tuple((call, extract_result_text(told, call) or "") for call in entry.answers),
    )
