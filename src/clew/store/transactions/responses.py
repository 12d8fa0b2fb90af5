"""Responses: what an input asked for as one, and where the input after it belongs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.core import session as reasons
from clew.core.turn import TurnState
from clew.errors import UsageError
from clew.record import Record
from clew.store.transactions.branches import branch_conversation
from clew.store.transactions.inbox import find_turn_of_item, get_item, list_open_items
from clew.store.transactions.sessions import find_context_change, get_head
from clew.store.transactions.settings import get_setting, put_setting
from clew.store.transactions.turn_queries import find_last_done_turn, find_unfinished_turn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.core.ids import ConversationId, InboxId, SessionIdFactory
    from clew.core.inbox import InboxItem
    from clew.core.turn import Turn
    from clew.store.contract import Tx

#: Key of an input's payload.
_PAYLOAD_KEY = "response"
#: Name of the setting with the metadata of a conversation.
_METADATA_SETTING = "metadata"


class EarlierInput(Record):
    """The input after whose answer a new one continues."""

    inbox_id: InboxId


def write_options(payload: str, options: Mapping[str, object]) -> str:
    """Return an input's payload with the options of its response."""
    told = {**json.loads(payload), _PAYLOAD_KEY: options}
    return json.dumps(told, ensure_ascii=False)


def read_options(payload: str) -> dict[str, object]:
    """Return the options of an input's response; none if it was not asked for as one."""
    if f'"{_PAYLOAD_KEY}"' not in payload:
        return {}
    return json.loads(payload).get(_PAYLOAD_KEY) or {}


def update_options(t: Tx, item: InboxItem, changed: Mapping[str, object]) -> None:
    """Change options of an input's response."""
    payload = write_options(item.payload, {**read_options(item.payload), **changed})
    t.execute("UPDATE inbox SET payload = $2 WHERE id = $1", item.id, payload)


def find_continuation(
    t: Tx,
    earlier: EarlierInput,
    *,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
) -> ConversationId:
    """
    Return the conversation that continues after the answer to an earlier input.

    It is that input's own while nothing followed, else a branch: ``new_conversation``.

    :raises NotFound: if there is no such input
    :raises UsageError: if it has no answer to continue after
    """
    item = get_item(t, earlier.inbox_id)
    conversation = item.conversation_id
    # Of two inputs that continue after the same answer, the second has to see the first.
    t.fetch_value("SELECT session_id FROM head WHERE conversation_id = $1 @LOCK", conversation)
    turn = find_turn_of_item(t, item.id)
    if _is_newest(t, item, turn):
        return conversation
    if turn is None or turn.state is not TurnState.DONE:
        raise UsageError(
            "there is no answer to continue after: the response is not finished and others wait "
            "behind it, or it was cancelled before it had begun"
        )
    branch_conversation(
        t,
        conversation,
        new_conversation=new_conversation,
        session_ids=session_ids,
        at=_find_last_seq(t, turn),
    )
    return new_conversation


def _is_newest(t: Tx, item: InboxItem, turn: Turn | None) -> bool:
    """Return whether nothing followed an input and the turn that answers it."""
    waiting = list_open_items(t, item.conversation_id)
    if turn is None:
        return bool(waiting) and waiting[-1].id == item.id
    newest = find_unfinished_turn(t, item.conversation_id) or find_last_done_turn(
        t, item.conversation_id
    )
    return not waiting and newest == turn and not _was_rewound(t, turn)


def _was_rewound(t: Tx, turn: Turn) -> bool:
    opened = find_context_change(t, get_head(t, turn.conversation_id))
    return opened.opened_by == reasons.REWIND and opened.opened_seq >= turn.first_seq


def read_answer_texts(t: Tx, turn: Turn) -> list[tuple[int, str]]:
    """Return the assistant's texts in a turn with their seqs, in order."""
    found = t.fetch_all(
        """
        SELECT seq, text FROM entry
        WHERE conversation_id = $1 AND seq >= $2 AND turn_id = $3 AND kind = 'message'
              AND role = 'assistant'
        ORDER BY seq
        """,
        turn.conversation_id,
        turn.first_seq,
        turn.id,
    )
    return [(seq, text) for seq, text in found if text.strip()]


def _find_last_seq(t: Tx, turn: Turn) -> int:
    """Return the seq of a turn's last entry."""
    return t.fetch_value(
        "SELECT max(seq) FROM entry WHERE conversation_id = $1 AND seq >= $2 AND turn_id = $3",
        turn.conversation_id,
        turn.first_seq,
        turn.id,
    )


def get_metadata(t: Tx, conversation: ConversationId) -> dict[str, str]:
    """Return the metadata that a client keeps with a conversation."""
    return json.loads(get_setting(t, conversation, _METADATA_SETTING) or "{}")


def put_metadata(t: Tx, conversation: ConversationId, metadata: Mapping[str, str]) -> None:
    """Replace the metadata of a conversation."""
    value = json.dumps(dict(metadata), ensure_ascii=False)
    put_setting(t, conversation, _METADATA_SETTING, value)
