"""Compaction state of a session, kept over restarts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clew.core.compaction import CompactionState
from clew.errors import LeaseHeld, TurnStopping
from clew.store.records import RecordQuery
from clew.store.transactions import leases
from clew.store.transactions.sessions import find_session_by_operation, rotate_session
from clew.store.transactions.turn_queries import find_unfinished_turn

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, OwnerId, SessionId, SessionIdFactory
    from clew.core.lease import Lease
    from clew.core.session import Head, Session
    from clew.core.session_base import Base
    from clew.store.contract import Tx


def _to_state(*, cooldown_until: int | None, fired: str, **rest: Any) -> CompactionState:
    return CompactionState(
        cooldown_until=cooldown_until or 0, fired=tuple(json.loads(fired)), **rest
    )


_STATE = RecordQuery(
    _to_state,
    "SELECT cooldown_until, failures, stalls, fired, told FROM compaction",
    {"told": bool},
)


def load_compaction_state(t: Tx, session: SessionId) -> CompactionState:
    """Return the stored compaction state, or a fresh one."""
    return _STATE.fetch_one(t, "WHERE session_id = $1", session) or CompactionState()


def save_compaction_state(t: Tx, session: SessionId, state: CompactionState) -> None:
    """Store the compaction state, replacing the previous one."""
    t.execute(
        """
        INSERT INTO compaction (session_id, cooldown_until, failures, stalls, fired, told)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (session_id) DO UPDATE
        SET cooldown_until = excluded.cooldown_until, failures = excluded.failures,
            stalls = excluded.stalls, fired = excluded.fired, told = excluded.told
        """,
        session,
        state.cooldown_until,
        state.failures,
        state.stalls,
        json.dumps(state.fired),
        int(state.told),
    )


def rotate_compacted(  # noqa: PLR0913  (each is a column of its own)
    t: Tx,
    lease: Lease,
    *,
    operation: str,
    expected: Head,
    base: Base,
    reason: str,
    state: CompactionState,
    session_ids: SessionIdFactory,
) -> Session:
    """
    Rotate into a compacted base and store the compaction state, in one commit.

    :raises TurnStopping: if it runs in a turn that was asked to stop
    :raises LeaseLost: if the lease is not held any more
    :raises RotationConflict: if the head or the last seq is not the expected one; nothing
        changed
    """
    turn = find_unfinished_turn(t, lease.conversation_id)
    if (
        turn is not None
        and turn.stop is not None
        and find_session_by_operation(t, operation) is None
    ):
        raise TurnStopping(turn.id)
    session = rotate_session(
        t,
        lease,
        operation=operation,
        expected=expected,
        base=base,
        reason=reason,
        session_ids=session_ids,
    )
    save_compaction_state(t, session.id, state)
    return session


def rotate_compacted_with_own_lease(  # noqa: PLR0913  (each is a column of its own)
    t: Tx,
    conversation: ConversationId,
    *,
    owner: OwnerId,
    operation: str,
    expected: Head,
    base: Base,
    reason: str,
    state: CompactionState,
    session_ids: SessionIdFactory,
) -> Session:
    """
    Do the same as ``rotate_compacted``, with a lease held for this commit only.

    :raises LeaseHeld: while any owner works on the conversation, ``owner`` itself included
    :raises RotationConflict: if the head or the last seq is not the expected one; nothing
        changed
    """
    if (before := find_session_by_operation(t, operation)) is not None:
        return before
    holder = t.fetch_value("SELECT owner FROM lease WHERE conversation_id = $1 @LOCK", conversation)
    if holder == owner:
        # A turn of this process is running, and its lease must not be released while it works.
        raise LeaseHeld(conversation, holder=owner)
    lease = leases.acquire_lease(t, conversation, owner=owner).lease
    session = rotate_compacted(
        t,
        lease,
        operation=operation,
        expected=expected,
        base=base,
        reason=reason,
        state=state,
        session_ids=session_ids,
    )
    leases.release_lease(t, lease)
    return session
