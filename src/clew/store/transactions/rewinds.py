"""Rewinds: the context goes back to an earlier point; the log keeps everything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.core import session as reasons
from clew.core.session import Head, Session
from clew.core.taken_back import RewindMark
from clew.core.turn import TurnOutcome, TurnState
from clew.errors import UsageError
from clew.store.transactions import leases
from clew.store.transactions.context import base_at
from clew.store.transactions.deliveries import end_previews
from clew.store.transactions.sessions import get_head, rotate
from clew.store.transactions.stops import get_turn
from clew.store.transactions.turns import finish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.entry import NewEntry
    from clew.core.ids import ConversationId, SessionId, SessionIdFactory
    from clew.core.lease import Lease
    from clew.core.turn import Turn
    from clew.store.contract import Tx
    from clew.store.transactions.turns import Step


def boundary_before(t: Tx, conversation: ConversationId, seq: int) -> int:
    """The last seq up to ``seq`` at which no tool call is unanswered; 0 is the beginning."""
    found = t.all(
        """
        SELECT seq, calls, answers FROM entry
        WHERE conversation_id = $1 AND seq <= $2 AND (calls <> '[]' OR answers <> '[]')
        ORDER BY seq DESC
        """,
        conversation,
        seq,
    )
    answered: set[str] = set()
    for asked, calls, answers in found:
        answered.update(json.loads(answers))
        asked_for = json.loads(calls)
        if asked_for:
            # The newest batch decides: one before it could not be open.
            return seq if answered.issuperset(asked_for) else asked - 1
    return seq


def refuse_unknown(seq: int, *, last_seq: int) -> None:
    """:raises UsageError: if a log that ends at ``last_seq`` has no such entry; 0 is its start"""
    if not 0 <= seq <= last_seq:
        entries = f"entries 1 to {last_seq}" if last_seq else "no entries yet"
        raise UsageError(f"there is no entry {seq}: the conversation has {entries}")


def rewind(
    t: Tx, lease: Lease, *, to: int, operation: str, session_ids: SessionIdFactory
) -> Session:
    """
    Make the context what it was right after entry ``to``, moved back to the last boundary.

    Repeating it with the same ``operation`` returns the same session.

    :raises LeaseLost: if the lease is not held any more
    :raises UsageError: if the log has no such entry
    """
    last_seq = leases.hold(t, lease)
    refuse_unknown(to, last_seq=last_seq)
    head = get_head(t, lease.conversation_id)
    return rotate(
        t,
        lease,
        operation=operation,
        expected=Head(session=head.id, last_seq=last_seq),
        base=base_at(t, lease.conversation_id, boundary_before(t, lease.conversation_id, to)),
        reason=reasons.REWIND,
        session_ids=session_ids,
    )


def rewinds_of(t: Tx, conversation: ConversationId) -> list[RewindMark]:
    """The rewinds of a conversation, in their order."""
    found = t.all(
        """
        SELECT s.opened_seq, (SELECT MAX(b.last_seq) FROM base_item b WHERE b.session_id = s.id)
        FROM session s WHERE s.conversation_id = $1 AND s.opened_by = $2
        ORDER BY s.opened_seq, s.opened_at
        """,
        conversation,
        reasons.REWIND,
    )
    # Its context ends in the entry that it went back to, and holds none where that is the start.
    return [RewindMark(at=at, to=to or 0) for at, to in found]


def roll_back(
    t: Tx,
    lease: Lease,
    session: SessionId,
    turn: Turn,
    *,
    drafts: Sequence[NewEntry],
    session_ids: SessionIdFactory,
    step: Step | None = None,
) -> Turn:
    """
    End a turn as cancelled and take it out of the context, in one commit; its unsent deliveries are
    dropped.

    Repeating it changes nothing.

    :raises LeaseLost: if the lease is not held any more
    """
    before = get_turn(t, turn.id)
    if before.state is TurnState.DONE:
        return before
    done = finish(
        t, lease, session, turn.id, TurnOutcome.CANCELLED, drafts=drafts, step=step, taken_back=True
    )
    t.run(
        """
        UPDATE delivery SET state = 'failed', error = 'rolled back', updated_at = $2
        WHERE turn_id = $1 AND state = 'pending'
        """,
        turn.id,
        t.now,
    )
    end_previews(t, lease.conversation_id, turn.id)
    rewind(
        t,
        lease,
        to=turn.first_seq - 1,
        operation=f"{turn.id}:rollback",
        session_ids=session_ids,
    )
    leases.release(t, lease)
    return done
