"""Approvals: asked, answered once, or expired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.clock import to_millis
from clew.core.approval import (
    TRANSITIONS,
    Approval,
    ApprovalState,
    NumberedApproval,
    fits_in_chat,
    format_question,
)
from clew.core.delivery import DeliveryKind, DeliveryState
from clew.core.ids import DeliveryId
from clew.core.moves import check_transition
from clew.errors import NotFound
from clew.store.transactions import deliveries, rows
from clew.store.transactions.leases import hold

if TYPE_CHECKING:
    from datetime import timedelta

    from clew.core.ids import ApprovalId, ConversationId, TurnId
    from clew.core.journal import CallKey
    from clew.core.lease import Lease
    from clew.core.route import RouteKey
    from clew.store.contract import Tx


def ask(  # noqa: PLR0913  (each is a column of its own)
    t: Tx,
    lease: Lease,
    key: CallKey,
    *,
    approval: ApprovalId,
    tool: str,
    args: str,
    route: RouteKey | None,
    expires_in: timedelta,
) -> Approval:
    """
    Store the question whether a call may run, and that it has not begun.

    Asking again for the same call returns the first question.

    :raises LeaseLost: if the lease is not held any more
    """
    hold(t, lease)
    # A tool that asked before it had any effect left its intent.
    t.run(
        """
        DELETE FROM journal
        WHERE turn_id = $1 AND step = $2 AND call_id = $3 AND status IS NULL AND NOT EXISTS (
            SELECT 1 FROM approval WHERE turn_id = $1 AND step = $2 AND call_id = $3
        )
        """,
        key.turn_id,
        key.step,
        key.call_id,
    )
    asked = t.run(
        """
        INSERT INTO approval (id, conversation_id, turn_id, step, call_id, tool, args, route,
                              state, asked_at,
                              expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'open', $9, $10)
        ON CONFLICT (turn_id, step, call_id) DO NOTHING
        """,
        approval,
        lease.conversation_id,
        key.turn_id,
        key.step,
        key.call_id,
        tool,
        args,
        route,
        # No two of a turn are asked at the same moment: their order is their number.
        max(t.now, _last_asked(t, key.turn_id) + 1),
        t.now + int(expires_in.total_seconds() * 1000),
    )
    t.wake(lease.conversation_id)
    found = question_of(t, key)
    assert found is not None
    if asked:
        _show(t, found)
    return found


def _last_asked(t: Tx, turn: TurnId) -> int:
    row = t.one("SELECT max(asked_at) FROM approval WHERE turn_id = $1", turn)
    return 0 if row is None or row[0] is None else row[0]


def _delivery_of(approval: ApprovalId) -> DeliveryId:
    return DeliveryId(f"dlv_{approval.removeprefix('apr_')}")


def _show(t: Tx, approval: Approval) -> None:
    """Have the question delivered, where it is asked on a channel."""
    asked = t.one("SELECT count(*) FROM approval WHERE turn_id = $1", approval.turn_id)
    assert asked is not None
    deliveries.tell(
        t,
        approval.conversation_id,
        approval.route,
        format_question(approval, number=asked[0]),
        id=_delivery_of(approval.id),
        kind=DeliveryKind.APPROVAL,
        turn=approval.turn_id,
    )


def answer(
    t: Tx,
    approval: ApprovalId,
    state: ApprovalState,
    *,
    answered_by: str | None,
    note: str | None = None,
) -> Approval:
    """
    Answer a question; needs no lease. The first answer stays, a late one changes nothing; the same
    person's same answer is that answer.

    :raises NotFound: if there is no such approval
    :raises WrongMove: if it was answered in another way or has expired
    """
    found = get_approval(t, approval)
    if (found.state, found.answered_by) == (state, answered_by):
        return found
    # Its time may be over although nobody has come to say so.
    over = found.state is ApprovalState.OPEN and to_millis(found.expires_at) <= t.now
    check_transition("approval", TRANSITIONS, ApprovalState.EXPIRED if over else found.state, state)
    changed = t.run(
        """
        UPDATE approval SET state = $2, answered_at = $3, answered_by = $4, note = $5
        WHERE id = $1 AND state = 'open'
        """,
        approval,
        state.value,
        t.now,
        answered_by,
        note,
    )
    after = get_approval(t, approval)
    if not changed:
        # Somebody answered between our look and our write.
        check_transition("approval", TRANSITIONS, after.state, state)
    t.wake(after.conversation_id)
    return after


def get_approval(t: Tx, approval: ApprovalId) -> Approval:
    """:raises NotFound: if there is no such approval"""
    row = t.one(f"{rows.APPROVAL} WHERE id = $1", approval)
    if row is None:
        raise NotFound("approval", approval)
    return rows.approval(row)


def question_of(t: Tx, key: CallKey) -> Approval | None:
    """What a person was asked about a call, whatever became of it."""
    row = t.one(
        f"{rows.APPROVAL} WHERE turn_id = $1 AND step = $2 AND call_id = $3",
        key.turn_id,
        key.step,
        key.call_id,
    )
    return None if row is None else rows.approval(row)


def open_approvals(t: Tx, conversation: ConversationId) -> list[Approval]:
    """The unanswered questions of a conversation, oldest first."""
    found = t.all(
        f"{rows.APPROVAL} WHERE conversation_id = $1 AND state = 'open' ORDER BY asked_at, id",
        conversation,
    )
    return [rows.approval(row) for row in found]


def questions(
    t: Tx, conversation: ConversationId, *, shown_at: RouteKey | None = None
) -> list[NumberedApproval]:
    """
    The unanswered questions of a conversation with their numbers, oldest first.

    With ``shown_at`` those that can be answered in that chat: they were asked there, and all of
    what would run has arrived.
    """
    return [
        NumberedApproval(number=_number(t, approval), approval=approval)
        for approval in open_approvals(t, conversation)
        if shown_at is None or _was_shown(t, approval, shown_at)
    ]


def _was_shown(t: Tx, approval: Approval, route: RouteKey) -> bool:
    if approval.route != route or not fits_in_chat(approval):
        return False
    row = t.one("SELECT state FROM delivery WHERE id = $1", _delivery_of(approval.id))
    return row is not None and row[0] == DeliveryState.DELIVERED.value


def _number(t: Tx, approval: Approval) -> int:
    row = t.one(
        "SELECT count(*) FROM approval WHERE turn_id = $1 AND asked_at <= $2",
        approval.turn_id,
        to_millis(approval.asked_at),
    )
    assert row is not None
    return row[0]


def deny_open(t: Tx, turn: TurnId, *, note: str) -> int:
    """Answer "no" to every open question of a turn; how many there were."""
    return t.run(
        """
        UPDATE approval SET state = 'denied', answered_at = $2, note = $3
        WHERE turn_id = $1 AND state = 'open'
        """,
        turn,
        t.now,
        note,
    )


def any_expired(t: Tx) -> bool:
    """Whether there is an unanswered question whose time is over."""
    row = t.one("SELECT 1 FROM approval WHERE state = 'open' AND expires_at <= $1 LIMIT 1", t.now)
    return row is not None


def expire(t: Tx) -> list[ConversationId]:
    """End the unanswered questions whose time is over; the conversations that may go on."""
    found = t.all(
        """
        UPDATE approval SET state = 'expired', answered_at = $1
        WHERE state = 'open' AND expires_at <= $1 RETURNING conversation_id
        """,
        t.now,
    )
    conversations = sorted({row[0] for row in found})
    for conversation in conversations:
        t.wake(conversation)
    return conversations
