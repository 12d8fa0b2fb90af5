"""What there is to do: conversations with something due that no living owner is at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from clew.clock import to_millis
from clew.core.double_text import select_steering
from clew.core.inbox import CLOCK_SKEW, InboxKind
from clew.core.turn import StartMode, TurnState, start_mode
from clew.store.transactions.inbox import line
from clew.store.transactions.leases import is_over

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, OwnerId
    from clew.store.contract import Row, Tx

_SKEW = CLOCK_SKEW // timedelta(milliseconds=1)
_END_OF_TIME = datetime.max.replace(tzinfo=UTC)
# The front of each line: what stands behind it waits for it, due or not.
_OPEN = """
    SELECT i.conversation_id, i.due_at, l.owner, l.expires_at, i.kind, i.received_at
    FROM inbox i JOIN lease l ON l.conversation_id = i.conversation_id
    WHERE i.outcome IS NULL AND NOT EXISTS (
        SELECT 1 FROM inbox b
        WHERE b.conversation_id = i.conversation_id AND b.outcome IS NULL AND b.n < i.n
    )
"""
_UNFINISHED = """
    SELECT t.conversation_id, t.state, t.stop, l.owner, l.expires_at,
           (SELECT count(*) FROM approval a WHERE a.turn_id = t.id AND a.state = 'open'),
           CASE WHEN t.resumed_seq = l.last_seq THEN t.resumes ELSE 0 END
    FROM turn t JOIN lease l ON l.conversation_id = t.conversation_id
    WHERE t.state <> 'done'
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Due:
    """What there is to do in a conversation."""

    #: By the database's clock.
    at: int
    begins: StartMode


def due_work(t: Tx, *, me: OwnerId, duration: timedelta | None = None) -> dict[ConversationId, int]:
    """
    Conversations that ``me`` could begin on, each with the time (ms) when; the oldest work first.

    ``duration`` is that of our leases: one that has far longer to run has a wrong end.

    Left out is what another living owner holds, and turns that only wait for approvals: what stands
    in their line waits with them, unless it joins the turn.
    """
    due: dict[ConversationId, int] = {}
    unfinished: set[ConversationId] = set()
    for conversation, state, stop, owner, expires_at, questions, _ in t.all(
        f"{_UNFINISHED} ORDER BY t.started_at, t.id"
    ):
        unfinished.add(conversation)
        waits = state == TurnState.WAITING.value and stop is None and questions > 0
        due_at = _joins_at(t, conversation) if waits else 0
        if due_at is not None and _free(t, owner, expires_at, me, duration):
            due[conversation] = due_at
    fronts = [row for row in t.all(f"{_OPEN} ORDER BY i.n") if row[0] not in unfinished]
    free = [row for row in fronts if _free(t, row[2], row[3], me, duration)]
    due |= {row[0]: _at(t, row[1], row[5]) for row in free}
    return due


def _joins_at(t: Tx, conversation: ConversationId) -> int | None:
    """When the first message that steers is due."""
    joining = select_steering(line(t, conversation), _END_OF_TIME)
    times = (_at(t, to_millis(item.due_at), to_millis(item.received_at)) for item in joining)
    return min(times, default=None)


def _at(t: Tx, due_at: int, received_at: int) -> int:
    """When it is due (ms): at once, where the clock has gone back to before it was received."""
    return 0 if received_at > t.now + _SKEW else due_at


def is_due(
    t: Tx,
    conversation: ConversationId,
    *,
    me: OwnerId | None = None,
    duration: timedelta | None = None,
) -> Due | None:
    """
    When there is something to do in one conversation; ``None`` if there is nothing.

    With ``me`` also where another living owner holds it, who sees to it.
    """
    row = t.one(f"{_UNFINISHED} AND t.conversation_id = $1", conversation)
    if row is not None:
        waits = row[1] == TurnState.WAITING.value and row[2] is None and row[5] > 0
        due_at = _joins_at(t, conversation) if waits else 0
        free = me is None or _free(t, row[3], row[4], me, duration)
        return Due(at=due_at, begins=_begins(row, me)) if free and due_at is not None else None
    front = t.one(f"{_OPEN} AND i.conversation_id = $1", conversation)
    if front is None or (me is not None and not _free(t, front[2], front[3], me, duration)):
        return None
    message = front[4] == InboxKind.MESSAGE.value
    at = _at(t, front[1], front[5])
    return Due(at=at, begins=StartMode.IN_ORDER if message else StartMode.AT_ONCE)


def _begins(row: Row, me: OwnerId | None) -> StartMode:
    """Of an unfinished turn: to begin it counts as one more resume where its owner was lost."""
    if row[2] is not None:
        return StartMode.AT_ONCE
    lost = row[1] == TurnState.RUNNING.value and row[3] not in (None, me)
    return start_mode(resumes=row[6] + lost)


def due_in(
    t: Tx, conversation: ConversationId, *, me: OwnerId, duration: timedelta
) -> tuple[int, StartMode] | None:
    """
    In how many milliseconds ``me`` has something to do in one conversation, and how it is begun.

    ``None`` if it has nothing. By the clock that made the due time: that of a process may run
    before or after it.
    """
    due = is_due(t, conversation, me=me, duration=duration)
    return None if due is None else (max(0, due.at - t.now), due.begins)


def due_work_in(t: Tx, *, me: OwnerId, duration: timedelta) -> dict[ConversationId, int]:
    """As ``due_work``, in milliseconds from now."""
    due = due_work(t, me=me, duration=duration)
    return {conversation: max(0, at - t.now) for conversation, at in due.items()}


def _free(
    t: Tx, owner: str | None, expires_at: int | None, me: OwnerId, duration: timedelta | None
) -> bool:
    if owner is None or owner == me:
        return True
    return is_over(t, owner, expires_at or 0, duration)
