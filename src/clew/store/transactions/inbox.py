"""The inbox: accepting an input, and what stands in a conversation's line."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import TYPE_CHECKING

from clew.clock import from_millis, to_millis
from clew.core.double_text import DoubleText, window_end
from clew.core.ids import ConversationId, InboxId
from clew.core.inbox import AcceptResult, InboxItem, InboxKind, InboxOutcome, NewInput
from clew.core.route import Route
from clew.core.turn import StopRequest
from clew.errors import NotFound
from clew.store.transactions import rows
from clew.store.transactions.conversations import open_route
from clew.store.transactions.stops import request_stop, unfinished_turn

if TYPE_CHECKING:
    from clew.core.ids import SessionIdFactory, TurnId
    from clew.core.turn import Turn
    from clew.store.contract import Tx

#: A delivered event stays known this long after its conversation was deleted.
DEDUPE_DAYS = 30

_STOPS = {DoubleText.INTERRUPT: StopRequest.INTERRUPT, DoubleText.ROLLBACK: StopRequest.ROLLBACK}


def accept(
    t: Tx,
    item: NewInput,
    *,
    target: Route | ConversationId,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
) -> AcceptResult:
    """
    Store an input before it is acknowledged.

    A route that resolves to nothing yet gets a conversation (``new_conversation``). A message whose
    rule is ``reject`` ends as rejected while a turn is unfinished or others wait; ``interrupt`` and
    ``rollback`` ask the running turn to stop. Repeating it with the same inbox id or event stores
    nothing and returns what became of the first.

    :raises NotFound: if the conversation given by id does not exist
    """
    if before := accepted_before(t, item.id, duplicate=False) or known_event(t, item):
        return before
    conversation = _target(t, target, new_conversation, session_ids)
    if first := _claim_event(t, item, conversation):
        return first
    ahead = _open_items(t, conversation)
    turn = unfinished_turn(t, conversation)
    outcome = _outcome(item, busy=turn is not None or ahead > 0)
    if not _insert(t, item, conversation, target, outcome):
        # The same call, on another connection, was faster.
        first = accepted_before(t, item.id, duplicate=False)
        assert first is not None
        return first
    if turn is not None and outcome is None and item.double_text in _STOPS:
        request_stop(t, turn.id, _STOPS[item.double_text])
    t.wake(conversation)
    return AcceptResult(
        inbox_id=item.id,
        conversation_id=conversation,
        duplicate=False,
        position=ahead,
        outcome=outcome,
    )


def is_known(t: Tx, item: NewInput) -> bool:
    """Whether this input, or its event, was accepted before."""
    return (accepted_before(t, item.id, duplicate=False) or known_event(t, item)) is not None


def accepted_before(t: Tx, inbox_id: InboxId, *, duplicate: bool) -> AcceptResult | None:
    """What became of an input that was accepted under this id; ``None`` if none was."""
    row = t.one(f"{rows.INBOX} WHERE id = $1", inbox_id)
    if row is None:
        return None
    found = rows.inbox_item(row)
    return AcceptResult(
        inbox_id=found.id,
        conversation_id=found.conversation_id,
        duplicate=duplicate,
        position=_open_items(t, found.conversation_id, before=found.n),
        outcome=found.outcome,
    )


def _target(
    t: Tx, target: Route | ConversationId, new: ConversationId, session_ids: SessionIdFactory
) -> ConversationId:
    if isinstance(target, str):
        # Shared with other inputs, exclusive with a delete: nothing lands in what is going.
        if t.one("SELECT conversation_id FROM head WHERE conversation_id = $1 @SHARE", target):
            return target
        raise NotFound("conversation", target)
    return open_route(t, target, new_conversation=new, session_ids=session_ids)


def event_key(event: tuple[str, str, str]) -> bytes:
    """sha256 of (channel, account, platform event id)."""
    return hashlib.sha256(json.dumps(event).encode()).digest()


def known_event(t: Tx, item: NewInput) -> AcceptResult | None:
    """The answer that the first delivery of this event got, if there was one."""
    if item.event is None:
        return None
    row = t.one(
        "SELECT inbox_id, conversation_id FROM dedupe WHERE key = $1", event_key(item.event)
    )
    if row is None:
        return None
    known = accepted_before(t, InboxId(row[0]), duplicate=row[0] != item.id)
    return known or AcceptResult(
        inbox_id=InboxId(row[0]),
        conversation_id=ConversationId(row[1]),
        duplicate=True,
        position=0,
        outcome=InboxOutcome.CANCELLED,
    )


def _claim_event(t: Tx, item: NewInput, conversation: ConversationId) -> AcceptResult | None:
    """``None`` if the event is ours now; else another process stored it since we looked."""
    if item.event is None:
        return None
    claimed = t.run(
        """
        INSERT INTO dedupe (key, inbox_id, conversation_id) VALUES ($1, $2, $3)
        ON CONFLICT (key) DO NOTHING
        """,
        event_key(item.event),
        item.id,
        conversation,
    )
    return None if claimed else known_event(t, item)


def input_of(t: Tx, event: tuple[str, str, str]) -> InboxItem | None:
    """What says now what an event told; ``None`` if it was never heard, or is deleted."""
    row = t.one("SELECT inbox_id FROM dedupe WHERE key = $1", event_key(event))
    return None if row is None else find_item(t, InboxId(row[0]))


def repoint(t: Tx, event: tuple[str, str, str], inbox_id: InboxId) -> None:
    """What a message said is said by another input from now on: later changes of it mean that."""
    t.run("UPDATE dedupe SET inbox_id = $2 WHERE key = $1", event_key(event), inbox_id)


def _open_items(t: Tx, conversation: ConversationId, before: int | None = None) -> int:
    row = t.one(
        """
        SELECT count(*) FROM inbox
        WHERE conversation_id = $1 AND outcome IS NULL AND ($2 = 0 OR n < $2)
        """,
        conversation,
        before or 0,
    )
    assert row is not None
    return row[0]


def _outcome(item: NewInput, *, busy: bool) -> InboxOutcome | None:
    rejected = busy and item.double_text is DoubleText.REJECT and item.kind is InboxKind.MESSAGE
    return InboxOutcome.REJECTED if rejected else None


def _insert(
    t: Tx,
    item: NewInput,
    conversation: ConversationId,
    target: Route | ConversationId,
    outcome: InboxOutcome | None,
) -> bool:
    route = target.key if isinstance(target, Route) else None
    hold = item.hold // timedelta(milliseconds=1)
    inserted = t.run(
        """
        INSERT INTO inbox (id, conversation_id, route, kind, text, payload, double_text,
                           received_at, due_at, held_until,
                           outcome, resolved_at, note)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
        ON CONFLICT (id) DO NOTHING
        """,
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
        None if outcome is None else outcome.value,
        None if outcome is None else t.now,
        None if outcome is None else "another turn is unfinished",
    )
    if inserted and item.double_text is DoubleText.COLLECT and item.kind is InboxKind.MESSAGE:
        _collect(t, item.id, conversation, route)
    return bool(inserted)


def _collect(t: Tx, inbox_id: InboxId, conversation: ConversationId, route: str | None) -> None:
    """Open a window, or join one: the whole burst moves to the time when its last part is due."""
    burst = t.all(
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
    received = [from_millis(row[0]) for row in burst]
    closes = to_millis(window_end(received[-1], earlier=received[:-1]))
    t.run(
        """
        UPDATE inbox SET due_at = $4
        WHERE conversation_id = $1 AND outcome IS NULL AND double_text = 'collect'
              AND (id = $5 OR (route = $2 AND due_at > $3))
        """,
        conversation,
        route,
        t.now,
        max(closes, *(row[1] or 0 for row in burst), t.now),
        inbox_id,
    )


def release(t: Tx, inbox_id: InboxId, payload: str) -> bool:
    """
    What came with a held item is there: it is due with its burst; ``False`` if it is due anyway.

    ``payload`` takes the place of the one before, also of an item that was edited meanwhile.
    """
    row = t.one(
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
    if row[2] == DoubleText.COLLECT.value:
        _collect(t, inbox_id, row[0], row[1])
    t.wake(row[0])
    return True


def held(t: Tx) -> list[InboxItem]:
    """Open items whose files were not fetched yet."""
    found = t.all(f"{rows.INBOX} WHERE outcome IS NULL AND held_until IS NOT NULL ORDER BY n")
    return [rows.inbox_item(row) for row in found]


def line(t: Tx, conversation: ConversationId) -> list[InboxItem]:
    """The open items of a conversation, in order of acceptance."""
    found = t.all(
        f"{rows.INBOX} WHERE conversation_id = $1 AND outcome IS NULL ORDER BY n", conversation
    )
    return [rows.inbox_item(row) for row in found]


def locked_line(t: Tx, conversation: ConversationId) -> list[InboxItem]:
    """As ``line``, and what is found can be neither edited nor cancelled before the commit."""
    found = t.all(
        f"{rows.INBOX} WHERE conversation_id = $1 AND outcome IS NULL ORDER BY n @LOCK",
        conversation,
    )
    return [rows.inbox_item(row) for row in found]


def get_item(t: Tx, inbox_id: InboxId) -> InboxItem:
    """:raises NotFound: if nothing was accepted under this id"""
    found = find_item(t, inbox_id)
    if found is None:
        raise NotFound("inbox item", inbox_id)
    return found


def waiting(t: Tx) -> list[tuple[ConversationId, int]]:
    """Conversations with open items, each with the time (ms) when its first one is due."""
    found = t.all(
        """
        SELECT conversation_id, min(due_at) FROM inbox WHERE outcome IS NULL
        GROUP BY conversation_id ORDER BY min(n)
        """
    )
    return [(ConversationId(row[0]), row[1]) for row in found]


def cancel(t: Tx, inbox_id: InboxId, *, note: str) -> bool:
    """End an open item as cancelled; ``False`` if it has an outcome already."""
    return _end(t, inbox_id, InboxOutcome.CANCELLED, note)


def executed(t: Tx, inbox_id: InboxId, *, note: str) -> bool:
    """End an open command as carried out; ``False`` if it has an outcome already."""
    return _end(t, inbox_id, InboxOutcome.EXECUTED, note)


def _end(t: Tx, inbox_id: InboxId, outcome: InboxOutcome, note: str) -> bool:
    row = t.one(
        """
        UPDATE inbox SET outcome = $2, note = $3, resolved_at = $4
        WHERE id = $1 AND outcome IS NULL RETURNING conversation_id
        """,
        inbox_id,
        outcome.value,
        note,
        t.now,
    )
    if row is None:
        return False
    t.wake(row[0])
    return True


def edit(t: Tx, inbox_id: InboxId, text: str) -> bool:
    """Change the text of an open message; ``False`` if it was consumed already."""
    row = t.one(
        """
        UPDATE inbox SET text = $2
        WHERE id = $1 AND outcome IS NULL AND kind = 'message' RETURNING conversation_id
        """,
        inbox_id,
        text,
    )
    if row is None:
        return False
    t.wake(row[0])
    return True


def find_item(t: Tx, inbox_id: InboxId) -> InboxItem | None:
    """As ``get_item``; ``None`` if there is none."""
    row = t.one(f"{rows.INBOX} WHERE id = $1", inbox_id)
    return None if row is None else rows.inbox_item(row)


def last_of_turn(t: Tx, turn: TurnId) -> InboxId | None:
    """The last input that a turn answers."""
    row = t.one("SELECT id FROM inbox WHERE turn_id = $1 ORDER BY n DESC LIMIT 1", turn)
    return None if row is None else InboxId(row[0])


def turn_of(t: Tx, inbox_id: InboxId) -> Turn | None:
    """The turn that an item began or joined, once it did."""
    row = t.one(f"{rows.TURN} WHERE id = (SELECT turn_id FROM inbox WHERE id = $1)", inbox_id)
    return None if row is None else rows.turn(row)


def payload_of(t: Tx, turn: TurnId) -> str:
    """What came with the first input of a turn."""
    row = t.one("SELECT payload FROM inbox WHERE turn_id = $1 ORDER BY n LIMIT 1", turn)
    return "{}" if row is None else row[0]
