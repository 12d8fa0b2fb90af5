"""Claims of messages: what a client sends again, with the same id and text, is taken once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.core.ids import InboxId, make_entry_id
from clew.core.inbox import InboxOutcome
from clew.core.rewound import find_rewound_spans, is_rewound
from clew.store.transactions.conversations import open_route
from clew.store.transactions.entries import find_entry_seq
from clew.store.transactions.inbox import find_accepted, find_item, hash_event
from clew.store.transactions.rewinds import list_rewinds
from clew.store.transactions.runs import read_message_id

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, SessionIdFactory
    from clew.core.inbox import AcceptResult, InboxItem, NewInput
    from clew.core.route import Route
    from clew.store.contract import Tx

_NOT_TAKEN = frozenset({InboxOutcome.CANCELLED, InboxOutcome.REJECTED})


def claim_message(
    t: Tx,
    item: NewInput,
    target: Route | ConversationId,
    *,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
) -> AcceptResult | None:
    """
    Claim the message of an input in its conversation; return the result of the input that has it.

    A message that was refused, cancelled or rewound is free again.
    """
    if item.message_id is None:
        return None
    conversation = (
        target
        if isinstance(target, str)
        else open_route(t, target, new_conversation=new_conversation, session_ids=session_ids)
    )
    first = _claim(t, item, conversation)
    if first is None or first == item.id:
        return None
    return find_accepted(t, first, duplicate=True)


def _claim(t: Tx, item: NewInput, conversation: ConversationId) -> InboxId | None:
    told = json.dumps([item.message_id, item.text])
    key = hash_event(("client_message", conversation, told))
    claimed = t.execute(
        """
        INSERT INTO dedupe (key, inbox_id, conversation_id) VALUES ($1, $2, $3)
        ON CONFLICT (key) DO NOTHING
        """,
        key,
        item.id,
        conversation,
    )
    if claimed:
        return None
    first = t.fetch_value("SELECT inbox_id FROM dedupe WHERE key = $1 @LOCK", key)
    if first is not None and _is_taken(t, find_item(t, InboxId(first)), item):
        return InboxId(first)
    t.execute("UPDATE dedupe SET inbox_id = $2 WHERE key = $1", key, item.id)
    return None


def _is_taken(t: Tx, found: InboxItem | None, item: NewInput) -> bool:
    """Return whether an input has the message of another one, and the conversation holds it."""
    if found is None or found.outcome in _NOT_TAKEN:
        return False
    if (read_message_id(found.payload), found.text) != (item.message_id, item.text):
        return False
    seq = find_entry_seq(t, make_entry_id(found.id))
    gone = find_rewound_spans(list_rewinds(t, found.conversation_id))
    return seq is None or not is_rewound(seq, gone)
