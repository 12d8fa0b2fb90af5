"""Rewinds: the context returns to an earlier point; the log keeps everything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.core import session as reasons
from clew.core.rewound import RewindMark
from clew.core.session import Head, Session
from clew.core.system_note import SystemNote
from clew.core.turn import TurnOutcome, TurnState
from clew.errors import UsageError
from clew.store.transactions import leases
from clew.store.transactions.context import build_base_at
from clew.store.transactions.deliveries import close_previews
from clew.store.transactions.sessions import get_head, rotate_session
from clew.store.transactions.turn_queries import get_turn
from clew.store.transactions.turns import finish_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.entry import NewEntry
    from clew.core.ids import ConversationId, SessionId, SessionIdFactory
    from clew.core.lease import Lease
    from clew.core.turn import Turn
    from clew.store.contract import Tx
    from clew.store.transactions.turns import StepRecord, TurnObserver


def find_boundary(t: Tx, conversation: ConversationId, seq: int) -> int:
    """Return the last seq up to ``seq`` with no unanswered tool call; 0 is the beginning."""
    found = t.fetch_all(
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
            # The newest batch decides, because no earlier one can be open.
            return seq if answered.issuperset(asked_for) else asked - 1
    return seq


def raise_if_unknown_entry(seq: int, *, last_seq: int) -> None:
    """
    Raise an error if a log that ends at ``last_seq`` has no entry ``seq``; 0 is its start.

    :raises UsageError: if there is no such entry
    """
    if not 0 <= seq <= last_seq:
        entries = f"entries 1 to {last_seq}" if last_seq else "no entries yet"
        raise UsageError(f"there is no entry {seq}: the conversation has {entries}")


def rewind_context(
    t: Tx, lease: Lease, *, to: int, operation: str, session_ids: SessionIdFactory
) -> Session:
    """
    Return the context to its state after entry ``to``, moved back to the last boundary.

    Repeating it with the same ``operation`` returns the same session.

    :raises LeaseLost: if the lease is not held any more
    :raises UsageError: if the log has no such entry
    """
    last_seq = leases.verify_lease_for_write(t, lease)
    raise_if_unknown_entry(to, last_seq=last_seq)
    head = get_head(t, lease.conversation_id)
    return rotate_session(
        t,
        lease,
        operation=operation,
        expected=Head(session=head.id, last_seq=last_seq),
        base=build_base_at(t, lease.conversation_id, find_boundary(t, lease.conversation_id, to)),
        reason=reasons.REWIND,
        session_ids=session_ids,
    )


def list_rewinds(t: Tx, conversation: ConversationId) -> list[RewindMark]:
    """Return the rewinds of a conversation, in order."""
    found = t.fetch_all(
        """
        SELECT s.opened_seq, (SELECT MAX(b.last_seq) FROM base_item b WHERE b.session_id = s.id)
        FROM session s WHERE s.conversation_id = $1 AND s.opened_by = $2
        ORDER BY s.opened_seq, s.opened_at
        """,
        conversation,
        reasons.REWIND,
    )
    # The base ends with the entry that it returned to, and is empty if that is the start.
    return [RewindMark(at=at, to=to or 0) for at, to in found]


def roll_back_turn(  # noqa: PLR0913  (each is needed in the one commit)
    t: Tx,
    lease: Lease,
    session: SessionId,
    turn: Turn,
    *,
    drafts: Sequence[NewEntry],
    session_ids: SessionIdFactory,
    step: StepRecord | None = None,
    observe: TurnObserver | None = None,
) -> Turn:
    """
    End a turn as cancelled and remove it from the context, in one commit.

    Its unsent deliveries are dropped. Repeating it changes nothing.

    :raises LeaseLost: if the lease is not held any more
    """
    before = get_turn(t, turn.id)
    if before.state is TurnState.DONE:
        return before
    done = finish_turn(
        t,
        lease,
        session,
        turn.id,
        TurnOutcome.CANCELLED,
        drafts=drafts,
        step=step,
        taken_back=True,
        observe=observe,
    )
    t.execute(
        """
        UPDATE delivery SET state = 'failed', error = $2, updated_at = $3
        WHERE turn_id = $1 AND state = 'pending'
        """,
        turn.id,
        SystemNote.ROLLED_BACK.value,
        t.now,
    )
    close_previews(t, lease.conversation_id, turn.id)
    rewind_context(
        t,
        lease,
        to=turn.first_seq - 1,
        operation=f"{turn.id}:rollback",
        session_ids=session_ids,
    )
    leases.release_lease(t, lease)
    return done
