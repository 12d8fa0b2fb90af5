"""Due work: conversations with something due that no living owner holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from clew.clock import to_millis
from clew.core.inbox import CLOCK_SKEW, InboxKind
from clew.core.turn import StartMode, TurnState, start_mode
from clew.core.work_queue import select_interruption
from clew.record import Record
from clew.store.transactions.inbox import list_open_items
from clew.store.transactions.leases import may_take_over

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, OwnerId
    from clew.store.contract import Tx

_CLOCK_SKEW_MS = CLOCK_SKEW // timedelta(milliseconds=1)
_END_OF_TIME = datetime.max.replace(tzinfo=UTC)
# The first open item of each conversation: later items wait for it, due or not.
_QUEUE_FRONTS = """
    SELECT i.conversation_id, i.due_at, l.owner, l.expires_at, i.kind, i.received_at
    FROM inbox i JOIN lease l ON l.conversation_id = i.conversation_id
    WHERE i.outcome IS NULL AND NOT EXISTS (
        SELECT 1 FROM inbox b
        WHERE b.conversation_id = i.conversation_id AND b.outcome IS NULL AND b.n < i.n
    )
"""
_UNFINISHED_TURNS = """
    SELECT t.conversation_id, t.state, t.stop, l.owner, l.expires_at,
           (SELECT count(*) FROM approval a WHERE a.turn_id = t.id AND a.state = 'open'),
           CASE WHEN t.resumed_seq = l.last_seq THEN t.resumes ELSE 0 END
    FROM turn t JOIN lease l ON l.conversation_id = t.conversation_id
    WHERE t.state <> 'done'
"""


class DueWork(Record):
    """The next work of a conversation."""

    #: Due time (ms) by the database's clock.
    at: int
    start_mode: StartMode


def find_due_work(
    t: Tx, *, me: OwnerId, duration: timedelta | None = None
) -> dict[ConversationId, int]:
    """
    Return the conversations that ``me`` could work on with due times (ms), oldest first.

    ``duration`` is our lease time: an expiry much further ahead is invalid.

    Conversations held by another living owner are left out, and so are turns that only wait
    for approvals: their queued items wait with them, unless one joins the turn.
    """
    due: dict[ConversationId, int] = {}
    unfinished: set[ConversationId] = set()
    for conversation, state, stop, owner, expires_at, questions, _ in t.fetch_all(
        f"{_UNFINISHED_TURNS} ORDER BY t.started_at, t.id"
    ):
        unfinished.add(conversation)
        waits = state == TurnState.WAITING.value and stop is None and questions > 0
        due_at = _steering_due_at(t, conversation) if waits else 0
        if due_at is not None and _is_free(t, owner, expires_at, me, duration):
            due[conversation] = due_at
    for conversation, due_at, owner, expires_at, _, received_at in t.fetch_all(
        f"{_QUEUE_FRONTS} ORDER BY i.n"
    ):
        if conversation not in unfinished and _is_free(t, owner, expires_at, me, duration):
            due[conversation] = _effective_due_at(t, due_at, received_at)
    return due


def _steering_due_at(t: Tx, conversation: ConversationId) -> int | None:
    """Return when the first message is due that ends the wait, or ``None``."""
    joining = select_interruption(list_open_items(t, conversation), _END_OF_TIME)
    times = (
        _effective_due_at(t, to_millis(item.due_at), to_millis(item.received_at))
        for item in joining
    )
    return min(times, default=None)


def _effective_due_at(t: Tx, due_at: int, received_at: int) -> int:
    """Return the due time (ms); 0 if the clock went back to before the item was received."""
    return 0 if received_at > t.now + _CLOCK_SKEW_MS else due_at


def find_next_work(
    t: Tx,
    conversation: ConversationId,
    *,
    me: OwnerId | None = None,
    duration: timedelta | None = None,
) -> DueWork | None:
    """
    Return the next work of one conversation; ``None`` if there is none.

    With ``me``, also ``None`` while another living owner holds the conversation.
    """
    row = t.fetch_one(f"{_UNFINISHED_TURNS} AND t.conversation_id = $1", conversation)
    if row is not None:
        _, state, stop, owner, expires_at, questions, resumes = row
        waits = state == TurnState.WAITING.value and stop is None and questions > 0
        due_at = _steering_due_at(t, conversation) if waits else 0
        if due_at is None or not (me is None or _is_free(t, owner, expires_at, me, duration)):
            return None
        lost = state == TurnState.RUNNING.value and owner not in (None, me)
        mode = StartMode.AT_ONCE if stop is not None else start_mode(resumes=resumes + lost)
        return DueWork(at=due_at, start_mode=mode)
    front = t.fetch_one(f"{_QUEUE_FRONTS} AND i.conversation_id = $1", conversation)
    if front is None:
        return None
    _, due_at, owner, expires_at, kind, received_at = front
    if me is not None and not _is_free(t, owner, expires_at, me, duration):
        return None
    begins_turn = kind in (InboxKind.MESSAGE.value, InboxKind.COMPLETION.value)
    at = _effective_due_at(t, due_at, received_at)
    return DueWork(at=at, start_mode=StartMode.IN_ORDER if begins_turn else StartMode.AT_ONCE)


def get_due_delay(
    t: Tx, conversation: ConversationId, *, me: OwnerId, duration: timedelta
) -> tuple[int, StartMode] | None:
    """
    Return the milliseconds until ``me`` has work in one conversation, and its start mode.

    ``None`` if there is no work. Measured by the database's clock, which set the due time,
    since a process clock may differ.
    """
    due = find_next_work(t, conversation, me=me, duration=duration)
    return None if due is None else (max(0, due.at - t.now), due.start_mode)


def find_due_delays(t: Tx, *, me: OwnerId, duration: timedelta) -> dict[ConversationId, int]:
    """Return the same conversations as ``find_due_work``, in milliseconds from now."""
    due = find_due_work(t, me=me, duration=duration)
    return {conversation: max(0, at - t.now) for conversation, at in due.items()}


def _is_free(
    t: Tx, owner: str | None, expires_at: int | None, me: OwnerId, duration: timedelta | None
) -> bool:
    if owner is None or owner == me:
        return True
    return may_take_over(t, owner, expires_at or 0, duration)
