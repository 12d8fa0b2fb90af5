"""Approvals: requested, answered once, or expired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.clock import from_millis, to_millis
from clew.core.approval import (
    TRANSITIONS,
    Approval,
    ApprovalReason,
    ApprovalState,
    NumberedApproval,
    fits_in_chat,
    format_question,
)
from clew.core.delivery import DeliveryKind, DeliveryState
from clew.core.ids import DeliveryId
from clew.core.transitions import check_transition
from clew.errors import NotFound
from clew.store.transactions import deliveries, grants, rows
from clew.store.transactions.leases import verify_lease_for_write

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from clew.core.grant import GrantTerm
    from clew.core.ids import ApprovalId, ConversationId, TurnId
    from clew.core.journal import CallKey
    from clew.core.lease import Lease
    from clew.core.message_order import WrittenMessage
    from clew.core.route import RouteKey
    from clew.core.system_note import SystemNote
    from clew.store.contract import Tx


def request_approval(  # noqa: PLR0913  (each is a column of its own)
    t: Tx,
    lease: Lease,
    key: CallKey,
    *,
    approval: ApprovalId,
    tool: str,
    args: str,
    route: RouteKey | None,
    expires_in: timedelta,
    requested: str | None = None,
    enclosing: Sequence[str] = (),
    question: ApprovalReason | None = None,
) -> Approval:
    """
    Store the approval request for a tool call that has not started.

    The calls ``enclosing`` it are suspended in the same commit. Repeating it for the same
    call returns the first request.

    :raises LeaseLost: if the lease is not held any more
    """
    verify_lease_for_write(t, lease)
    _withdraw_intent(t, key)
    _suspend_calls(t, key, enclosing)
    asked = t.execute(
        """
        INSERT INTO approval (id, conversation_id, turn_id, step, call_id, tool, args, route,
                              state, asked_at, expires_at, requested, why, offer, preview,
                              untrusted, terms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'open', $9, $10, $11, $12, $13, $14, $15, $16)
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
        # Each request of a turn gets a distinct time, because the order defines its number.
        max(t.now, _last_asked_at(t, key.turn_id) + 1),
        t.now + int(expires_in.total_seconds() * 1000),
        requested,
        question and question.why,
        question and question.offer and question.offer.to_json(),
        question and question.preview,
        int(question is not None and question.untrusted),
        question and question.terms and question.terms.to_json(),
    )
    t.notify(lease.conversation_id)
    found = find_approval(t, key)
    assert found is not None
    if asked:
        _deliver_request(t, found)
    return found


def _withdraw_intent(t: Tx, key: CallKey) -> None:
    """Delete the intent of a tool that asks for approval before it has any effect."""
    t.execute(
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


def _suspend_calls(t: Tx, key: CallKey, enclosing: Sequence[str]) -> None:
    """Mark the calls around one that waits: once answered, they run again from the top."""
    for outer in enclosing:
        t.execute(
            """
            UPDATE journal SET suspended = 1
            WHERE turn_id = $1 AND step = $2 AND call_id = $3 AND status IS NULL
            """,
            key.turn_id,
            key.step,
            outer,
        )


def _last_asked_at(t: Tx, turn: TurnId) -> int:
    return t.fetch_value("SELECT max(asked_at) FROM approval WHERE turn_id = $1", turn) or 0


def _delivery_id_for(approval: ApprovalId) -> DeliveryId:
    return DeliveryId(f"dlv_{approval.removeprefix('apr_')}")


def _deliver_request(t: Tx, approval: Approval) -> None:
    """Deliver the request if its route is a channel."""
    asked = t.fetch_value("SELECT count(*) FROM approval WHERE turn_id = $1", approval.turn_id)
    deliveries.deliver_to_chat(
        t,
        approval.conversation_id,
        approval.route,
        format_question(approval, number=asked),
        id=_delivery_id_for(approval.id),
        kind=DeliveryKind.APPROVAL,
        turn=approval.turn_id,
    )


def answer_approval(
    t: Tx,
    approval: ApprovalId,
    state: ApprovalState,
    *,
    answered_by: str | None,
    note: str | None = None,
    keep: GrantTerm | None = None,
) -> Approval:
    """
    Answer an approval request; no lease is needed.

    The first answer wins and a late one changes nothing; the same answer by the same person
    is accepted again. With ``keep``, what it offered is granted for longer.

    :raises NotFound: if there is no such approval, or it offered nothing to keep
    :raises InvalidTransition: if it has expired or was answered differently
    """
    found = get_approval(t, approval)
    if (found.state, found.answered_by) == (state, answered_by):
        return found
    if keep is not None and found.offer is None:
        raise NotFound("offer of approval", approval)
    # It may have expired without being marked so yet.
    over = found.state is ApprovalState.OPEN and to_millis(found.expires_at) <= t.now
    check_transition("approval", TRANSITIONS, ApprovalState.EXPIRED if over else found.state, state)
    changed = t.execute(
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
        # Another answer was stored between the read and the write.
        check_transition("approval", TRANSITIONS, after.state, state)
    if keep is not None:
        grants.record_grant(t, after, keep, by=answered_by)
    t.notify(after.conversation_id)
    return after


def get_approval(t: Tx, approval: ApprovalId) -> Approval:
    """
    Return an approval.

    :raises NotFound: if there is no such approval
    """
    found = rows.APPROVAL.fetch_one(t, "WHERE id = $1", approval)
    if found is None:
        raise NotFound("approval", approval)
    return found


def find_approval(t: Tx, key: CallKey) -> Approval | None:
    """Return the approval request for a call, in whatever state, or ``None``."""
    return rows.APPROVAL.fetch_one(
        t, "WHERE turn_id = $1 AND step = $2 AND call_id = $3", key.turn_id, key.step, key.call_id
    )


def list_open_approvals(t: Tx, conversation: ConversationId) -> list[Approval]:
    """Return the open approvals of a conversation, oldest first."""
    return rows.APPROVAL.fetch_all(
        t, "WHERE conversation_id = $1 AND state = 'open' ORDER BY asked_at, id", conversation
    )


def list_questions(
    t: Tx,
    conversation: ConversationId,
    *,
    shown_at: RouteKey | None = None,
    written: WrittenMessage | None = None,
) -> list[NumberedApproval]:
    """
    Return the open approvals of a conversation with their numbers, oldest first.

    With ``shown_at``, those that can be answered in that chat, of whatever conversation: they
    were requested there, and the whole request was delivered. ``written`` is the message that
    is to answer them.
    """
    if shown_at is None:
        found = list_open_approvals(t, conversation)
    else:
        asked = rows.APPROVAL.fetch_all(
            t, "WHERE route = $1 AND state = 'open' ORDER BY asked_at, id", shown_at
        )
        found = [one for one in asked if _was_delivered_to(t, one, shown_at)]
    return [
        NumberedApproval(
            number=get_approval_number(t, approval),
            approval=approval,
            was_seen=written is None or _was_shown_before(t, approval, written),
        )
        for approval in found
    ]


def _was_delivered_to(t: Tx, approval: Approval, route: RouteKey) -> bool:
    if approval.route != route or not fits_in_chat(approval):
        return False
    state = t.fetch_value("SELECT state FROM delivery WHERE id = $1", _delivery_id_for(approval.id))
    return state == DeliveryState.DELIVERED.value


def _was_shown_before(t: Tx, approval: Approval, written: WrittenMessage) -> bool:
    """Return whether the whole request had arrived when a message was written."""
    shown = t.fetch_one(
        """
        SELECT k.platform_id, d.updated_at FROM delivery d
        JOIN delivery_chunk k ON k.delivery_id = d.id
        WHERE d.id = $1 ORDER BY k.position DESC LIMIT 1
        """,
        _delivery_id_for(approval.id),
    )
    return shown is not None and written.follows(shown[0], from_millis(shown[1]))


def get_approval_number(t: Tx, approval: Approval) -> int:
    """Return the number of an approval among all of its turn, from 1."""
    return t.fetch_value(
        "SELECT count(*) FROM approval WHERE turn_id = $1 AND asked_at <= $2",
        approval.turn_id,
        to_millis(approval.asked_at),
    )


def deny_open_approvals(t: Tx, turn: TurnId, *, note: SystemNote) -> int:
    """Deny every open approval of a turn, and return their count."""
    return t.execute(
        """
        UPDATE approval SET state = 'denied', answered_at = $2, note = $3
        WHERE turn_id = $1 AND state = 'open'
        """,
        turn,
        t.now,
        note.value,
    )


def has_expired_approvals(t: Tx) -> bool:
    """Return whether an open approval is past its expiry."""
    return t.exists(
        "SELECT 1 FROM approval WHERE state = 'open' AND expires_at <= $1 LIMIT 1", t.now
    )


def expire_approvals(t: Tx) -> list[ConversationId]:
    """End the open approvals past their expiry, and return the conversations that may continue."""
    found = t.fetch_column(
        """
        UPDATE approval SET state = 'expired', answered_at = $1
        WHERE state = 'open' AND expires_at <= $1 RETURNING conversation_id
        """,
        t.now,
    )
    conversations = sorted(set(found))
    for conversation in conversations:
        t.notify(conversation)
    return conversations
