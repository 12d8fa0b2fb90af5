"""The inbox: accepting an input, and the open items of a conversation."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import TYPE_CHECKING

from clew.clock import from_millis, to_millis
from clew.core.double_text import DoubleText, window_end
from clew.core.inbox import AcceptResult, InboxItem, InboxKind, InboxOutcome, NewInput
from clew.core.route import Route
from clew.core.system_note import SystemNote
from clew.core.turn import StopRequest
from clew.errors import NotFound
from clew.store.transactions import rows
from clew.store.transactions.conversations import open_route
from clew.store.transactions.turn_queries import find_unfinished_turn, request_stop

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, InboxId, SessionIdFactory, TurnId
    from clew.core.route import RouteKey
    from clew.core.turn import Turn
    from clew.store.contract import Tx

#: Event keys outlive a deleted conversation by this many days.
DEDUPE_DAYS = 30

_INSERT_ITEM = """
    INSERT INTO inbox (id, conversation_id, route, kind, text, payload, double_text,
                       received_at, due_at, held_until,
                       outcome, resolved_at, note, untrusted)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
    ON CONFLICT (id) DO NOTHING
"""
_STOP_BY_RULE = {
    DoubleText.INTERRUPT: StopRequest.INTERRUPT,
    DoubleText.ROLLBACK: StopRequest.ROLLBACK,
}


def accept_input(
    t: Tx,
    item: NewInput,
    *,
    target: Route | ConversationId,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
    answer_to: RouteKey | None = None,
) -> AcceptResult:
    """
    Store an input before it is acknowledged.

    An unknown route gets ``new_conversation``. The answer goes to the target, or to
    ``answer_to``, which may lead to another conversation. A message whose rule is ``reject``
    ends as rejected while a turn is unfinished or items are queued; ``interrupt`` and
    ``rollback`` ask the running turn to stop. Repeating an id or event returns the first result.

    :raises NotFound: if the conversation given by id does not exist
    """
    if before := find_known_input(t, item):
        return before
    conversation = _resolve_target(t, target, new_conversation, session_ids)
    if first := _claim_event(t, item, conversation):
        return first
    route = target.key if isinstance(target, Route) else answer_to
    ahead, turn = _count_open_items(t, conversation), find_unfinished_turn(t, conversation)
    outcome = _initial_outcome(item, busy=turn is not None or ahead > 0)
    state = (None, None, None) if outcome is None else (outcome.value, t.now, SystemNote.BUSY.value)
    hold = item.hold // timedelta(milliseconds=1)
    inserted = t.execute(
        _INSERT_ITEM,
        item.id,
        conversation,
        route,
        item.kind.value,
        item.text,
        item.payload,
        item.double_text.value,
        t.now,
        t.now + hold,
        t.now + hold if hold else None,
        *state,
        int(item.untrusted),
    )
    if not inserted:
        # The same call on another connection was faster.
        first = find_accepted(t, item.id, duplicate=False)
        assert first is not None
        return first
    _set_due_times(t, item, conversation, route, ahead)
    if turn is not None and outcome is None:
        _stop_turn_by_rule(t, turn, item)
    t.notify(conversation)
    return AcceptResult(
        inbox_id=item.id,
        conversation_id=conversation,
        duplicate=False,
        position=ahead,
        outcome=outcome,
    )


def accept_own_command(
    t: Tx,
    conversation: ConversationId,
    command: str,
    *,
    id: InboxId,
    session_ids: SessionIdFactory,
    payload: str = "{}",
) -> AcceptResult:
    """
    Store a command of Clew itself, which is carried out once the conversation's turn has ended.

    :raises NotFound: if the conversation does not exist
    """
    item = NewInput(
        id=id,
        kind=InboxKind.COMMAND,
        text=command,
        payload=payload,
        double_text=DoubleText.QUEUE,
    )
    return accept_input(
        t, item, target=conversation, new_conversation=conversation, session_ids=session_ids
    )


def find_known_input(t: Tx, item: NewInput) -> AcceptResult | None:
    """Return the result of this input, or of its event, if it was accepted before."""
    return find_accepted(t, item.id, duplicate=False) or find_accepted_event(t, item)


def find_accepted(t: Tx, inbox_id: InboxId, *, duplicate: bool) -> AcceptResult | None:
    """Return the current result for an accepted inbox id; ``None`` if it is unknown."""
    found = find_item(t, inbox_id)
    if found is None:
        return None
    return AcceptResult(
        inbox_id=found.id,
        conversation_id=found.conversation_id,
        duplicate=duplicate,
        position=_count_open_items(t, found.conversation_id, before=found.n),
        outcome=found.outcome,
    )


def _resolve_target(
    t: Tx, target: Route | ConversationId, new: ConversationId, session_ids: SessionIdFactory
) -> ConversationId:
    if isinstance(target, str):
        # A shared lock excludes a deletion, so no input lands in a conversation being deleted.
        if t.fetch_one(
            "SELECT conversation_id FROM head WHERE conversation_id = $1 @SHARE", target
        ):
            return target
        raise NotFound("conversation", target)
    return open_route(t, target, new_conversation=new, session_ids=session_ids)


def hash_event(event: tuple[str, str, str]) -> bytes:
    """Return the SHA-256 of (channel, account, platform event id)."""
    return hashlib.sha256(json.dumps(event).encode()).digest()


def find_accepted_event(t: Tx, item: NewInput) -> AcceptResult | None:
    """Return the result of the first delivery of this event, or ``None``."""
    if item.event is None:
        return None
    row = t.fetch_one(
        "SELECT inbox_id, conversation_id FROM dedupe WHERE key = $1", hash_event(item.event)
    )
    if row is None:
        return None
    inbox_id, conversation = row
    known = find_accepted(t, inbox_id, duplicate=inbox_id != item.id)
    return known or AcceptResult(
        inbox_id=inbox_id,
        conversation_id=conversation,
        duplicate=True,
        position=0,
        outcome=InboxOutcome.CANCELLED,
    )


def _claim_event(t: Tx, item: NewInput, conversation: ConversationId) -> AcceptResult | None:
    """Claim the event; return ``None``, or the result of an earlier claim by another process."""
    if item.event is None:
        return None
    claimed = t.execute(
        """
        INSERT INTO dedupe (key, inbox_id, conversation_id) VALUES ($1, $2, $3)
        ON CONFLICT (key) DO NOTHING
        """,
        hash_event(item.event),
        item.id,
        conversation,
    )
    return None if claimed else find_accepted_event(t, item)


def find_input_of_event(t: Tx, event: tuple[str, str, str]) -> InboxItem | None:
    """Return the input that an event refers to; ``None`` if unknown or deleted."""
    found = t.fetch_value("SELECT inbox_id FROM dedupe WHERE key = $1", hash_event(event))
    return None if found is None else find_item(t, found)


def relink_event(t: Tx, event: tuple[str, str, str], inbox_id: InboxId) -> None:
    """Link an event to another input, which later edits of the message will refer to."""
    t.execute("UPDATE dedupe SET inbox_id = $2 WHERE key = $1", hash_event(event), inbox_id)


def _count_open_items(t: Tx, conversation: ConversationId, before: int | None = None) -> int:
    return t.fetch_value(
        """
        SELECT count(*) FROM inbox
        WHERE conversation_id = $1 AND outcome IS NULL AND ($2 = 0 OR n < $2)
        """,
        conversation,
        before or 0,
    )


def _initial_outcome(item: NewInput, *, busy: bool) -> InboxOutcome | None:
    rejected = busy and item.double_text is DoubleText.REJECT and item.kind is InboxKind.MESSAGE
    return InboxOutcome.REJECTED if rejected else None


def _stop_turn_by_rule(t: Tx, turn: Turn, item: NewInput) -> None:
    """Ask the running turn to stop if the double-text rule of the new message says so."""
    if item.double_text in _STOP_BY_RULE:
        request_stop(t, turn.id, _STOP_BY_RULE[item.double_text])


def _set_due_times(
    t: Tx, item: NewInput, conversation: ConversationId, route: str | None, ahead: int
) -> None:
    if item.double_text is DoubleText.COLLECT and item.kind is InboxKind.MESSAGE:
        _join_collect_window(t, item.id, conversation, route)
    if ahead and item.kind is not InboxKind.COMPLETION:
        _release_completions(t, item.id, conversation)


def _release_completions(t: Tx, inbox_id: InboxId, conversation: ConversationId) -> None:
    """Have completions wait no longer than the input behind them."""
    t.execute(
        """
        UPDATE inbox SET due_at = (SELECT b.due_at FROM inbox b WHERE b.id = $2)
        WHERE conversation_id = $1 AND outcome IS NULL AND kind = 'completion'
              AND due_at > (SELECT b.due_at FROM inbox b WHERE b.id = $2)
        """,
        conversation,
        inbox_id,
    )


def _join_collect_window(
    t: Tx, inbox_id: InboxId, conversation: ConversationId, route: str | None
) -> None:
    """Open a window, or join one: the whole burst becomes due with its last part."""
    burst = t.fetch_all(
        """
        SELECT received_at, held_until FROM inbox
        WHERE conversation_id = $1 AND outcome IS NULL AND double_text = 'collect'
              AND (id = $4 OR (route = $2 AND due_at > $3))
        ORDER BY n
        """,
        conversation,
        route,
        t.now,
        inbox_id,
    )
    received = [from_millis(received_at) for received_at, _ in burst]
    closes = to_millis(window_end(received[-1], earlier=received[:-1]))
    t.execute(
        """
        UPDATE inbox SET due_at = $4
        WHERE conversation_id = $1 AND outcome IS NULL AND double_text = 'collect'
              AND (id = $5 OR (route = $2 AND due_at > $3))
        """,
        conversation,
        route,
        t.now,
        max(closes, *(held_until or 0 for _, held_until in burst), t.now),
        inbox_id,
    )


def release_held_item(t: Tx, inbox_id: InboxId, payload: str) -> bool:
    """
    Make a held item due with its burst; ``False`` if it is not held.

    ``payload`` replaces the previous one, also if the item was edited meanwhile.
    """
    row = t.fetch_one(
        """
        UPDATE inbox SET held_until = NULL, payload = $2, due_at = CASE WHEN due_at < $3
            THEN due_at ELSE $3 END
        WHERE id = $1 AND outcome IS NULL AND held_until IS NOT NULL
        RETURNING conversation_id, route, double_text
        """,
        inbox_id,
        payload,
        t.now,
    )
    if row is None:
        return False
    conversation, route, double_text = row
    if double_text == DoubleText.COLLECT.value:
        _join_collect_window(t, inbox_id, conversation, route)
    t.notify(conversation)
    return True


def keep_holding_item(t: Tx, inbox_id: InboxId, payload: str, *, hold: timedelta) -> bool:
    """Hold a held item for longer, with a new payload; ``False`` if it is not held."""
    until = t.now + hold // timedelta(milliseconds=1)
    row = t.fetch_one(
        """
        UPDATE inbox SET held_until = $3, due_at = $3, payload = $2
        WHERE id = $1 AND outcome IS NULL AND held_until IS NOT NULL
        RETURNING conversation_id, route, double_text
        """,
        inbox_id,
        payload,
        until,
    )
    if row is None:
        return False
    conversation, route, double_text = row
    if double_text == DoubleText.COLLECT.value:
        _join_collect_window(t, inbox_id, conversation, route)
    return True


def list_held_items(t: Tx) -> list[InboxItem]:
    """Return the open items whose files are not fetched, or not read, yet."""
    return rows.INBOX.fetch_all(t, "WHERE outcome IS NULL AND held_until IS NOT NULL ORDER BY n")


def list_open_items(t: Tx, conversation: ConversationId) -> list[InboxItem]:
    """Return the open items of a conversation, in order of acceptance."""
    return rows.INBOX.fetch_all(
        t, "WHERE conversation_id = $1 AND outcome IS NULL ORDER BY n", conversation
    )


def lock_open_items(t: Tx, conversation: ConversationId) -> list[InboxItem]:
    """Return the open items, locked against edits and cancellation until the commit."""
    return rows.INBOX.fetch_all(
        t, "WHERE conversation_id = $1 AND outcome IS NULL ORDER BY n @LOCK", conversation
    )


def get_item(t: Tx, inbox_id: InboxId) -> InboxItem:
    """
    Return an inbox item.

    :raises NotFound: if the id is unknown
    """
    found = find_item(t, inbox_id)
    if found is None:
        raise NotFound("inbox item", inbox_id)
    return found


def cancel_item(t: Tx, inbox_id: InboxId, *, note: str) -> bool:
    """End an open item as cancelled; ``False`` if it has an outcome already."""
    return _resolve_item(t, inbox_id, InboxOutcome.CANCELLED, note)


def mark_executed(t: Tx, inbox_id: InboxId, *, note: str) -> bool:
    """End an open command as executed; ``False`` if it has an outcome already."""
    return _resolve_item(t, inbox_id, InboxOutcome.EXECUTED, note)


def _resolve_item(t: Tx, inbox_id: InboxId, outcome: InboxOutcome, note: str) -> bool:
    conversation = t.fetch_value(
        """
        UPDATE inbox SET outcome = $2, note = $3, resolved_at = $4
        WHERE id = $1 AND outcome IS NULL RETURNING conversation_id
        """,
        inbox_id,
        outcome.value,
        note,
        t.now,
    )
    if conversation is not None:
        t.notify(conversation)
    return conversation is not None


def edit_message(t: Tx, inbox_id: InboxId, text: str, *, untrusted: bool = False) -> bool:
    """Change the text of an open message; ``False`` if it was consumed already."""
    conversation = t.fetch_value(
        """
        UPDATE inbox SET text = $2, untrusted = CASE WHEN $3 = 1 THEN 1 ELSE untrusted END
        WHERE id = $1 AND outcome IS NULL AND kind = 'message' RETURNING conversation_id
        """,
        inbox_id,
        text,
        int(untrusted),
    )
    if conversation is not None:
        t.notify(conversation)
    return conversation is not None


def find_item(t: Tx, inbox_id: InboxId) -> InboxItem | None:
    """Return an inbox item; ``None`` if the id is unknown."""
    return rows.INBOX.fetch_one(t, "WHERE id = $1", inbox_id)


def read_payloads(t: Tx, turn: TurnId) -> list[str]:
    """Return the payloads of the inputs of a turn, in order."""
    return t.fetch_column("SELECT payload FROM inbox WHERE turn_id = $1 ORDER BY n", turn)


def find_last_input(t: Tx, turn: TurnId) -> InboxId | None:
    """Return the id of the last input that a turn answers."""
    return t.fetch_value("SELECT id FROM inbox WHERE turn_id = $1 ORDER BY n DESC LIMIT 1", turn)


def find_turn_of_item(t: Tx, inbox_id: InboxId) -> Turn | None:
    """Return the turn that an item began or joined, or ``None``."""
    return rows.TURN.fetch_one(t, "WHERE id = (SELECT turn_id FROM inbox WHERE id = $1)", inbox_id)


def get_turn_payload(t: Tx, turn: TurnId, *, kind: InboxKind = InboxKind.MESSAGE) -> str:
    """Return the payload of a turn's first input of a kind."""
    found = t.fetch_value(
        "SELECT payload FROM inbox WHERE turn_id = $1 AND kind = $2 ORDER BY n LIMIT 1",
        turn,
        kind.value,
    )
    return "{}" if found is None else found
