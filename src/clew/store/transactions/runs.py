"""Runs: inputs of clients that name each message, and what such a client can read of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, EntryId, InboxId, TurnId
    from clew.core.turn import Turn
    from clew.store.contract import Tx

#: Key of an input's payload: the id that its client gave the message.
_PAYLOAD_KEY = "message_id"


def write_message_id(payload: str, id: str) -> str:
    """Return an input's payload with the id that its client gave the message."""
    return json.dumps({**json.loads(payload), _PAYLOAD_KEY: id}, ensure_ascii=False)


def read_message_id(payload: str) -> str | None:
    """Return the id that a client gave the message, if it gave one."""
    return json.loads(payload).get(_PAYLOAD_KEY) if f'"{_PAYLOAD_KEY}"' in payload else None


def read_message_ids(
    t: Tx, conversation: ConversationId, *, first: int, last: int
) -> dict[EntryId, str]:
    """Return the ids that clients gave the messages of a span, by the entries of these."""
    found = t.fetch_map(
        """
        SELECT e.id, i.payload FROM entry e JOIN inbox i ON i.id = 'inb_' || substr(e.id, 5)
        WHERE e.conversation_id = $1 AND e.seq BETWEEN $2 AND $3 AND e.role = 'user'
        """,
        conversation,
        first,
        last,
    )
    ids = {entry: read_message_id(payload) for entry, payload in found.items()}
    return {entry: id for entry, id in ids.items() if id is not None}


def find_first_input(t: Tx, turn: TurnId) -> InboxId | None:
    """Return the id of the first input that a turn answers."""
    return t.fetch_value("SELECT id FROM inbox WHERE turn_id = $1 ORDER BY n LIMIT 1", turn)


def read_turn_span(t: Tx, turn: Turn) -> tuple[int, int]:
    """Return the seqs of the first and the last entry of a turn."""
    last = t.fetch_value(
        "SELECT max(seq) FROM entry WHERE conversation_id = $1 AND seq >= $2 AND turn_id = $3",
        turn.conversation_id,
        turn.first_seq,
        turn.id,
    )
    return turn.first_seq, last or turn.first_seq - 1


def count_responses(t: Tx, conversation: ConversationId, turn: TurnId, *, before: int) -> int:
    """Return how many responses of a turn are stored below a seq."""
    return t.fetch_value(
        """
        SELECT count(*) FROM entry
        WHERE conversation_id = $1 AND turn_id = $2 AND seq < $3 AND kind = 'message'
              AND role = 'assistant'
        """,
        conversation,
        turn,
        before,
    )
