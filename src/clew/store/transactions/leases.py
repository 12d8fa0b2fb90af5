"""The lease: the right to write to a conversation and to number its entries."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from clew.core.ids import ConversationId, EntryId, OwnerId
from clew.errors import LeaseHeld, LeaseLost, NotFound
from clew.record import Record
from clew.store.transactions import rows

if TYPE_CHECKING:
    from clew.core.lease import Lease
    from clew.store.contract import Row, Tx

#: Lifetime of a lease that is not renewed.
LEASE_DURATION = timedelta(seconds=15)


class AcquiredLease(Record):
    """An acquired lease, the last seq of its log, and the owner it was taken from."""

    lease: Lease
    last_seq: int
    #: The owner that had not released it; ``None`` if it was free or already ours.
    lost_owner: OwnerId | None


def acquire_lease(
    t: Tx, conversation: ConversationId, *, owner: OwnerId, duration: timedelta = LEASE_DURATION
) -> AcquiredLease:
    """
    Acquire the exclusive right to write to a conversation.

    Succeeds if it is free, if its owner is dead or its time is over, or if ``owner`` holds
    it already. The fence rises by one unless ``owner`` holds it already.

    :raises NotFound: if there is no such conversation, or it is being deleted
    :raises LeaseHeld: while another living owner holds it
    """
    holder, expires_at = _lock_lease_row(t, conversation)
    millis = duration // timedelta(milliseconds=1)
    ours = holder == owner
    if holder is not None and not ours and not may_take_over(t, holder, expires_at, duration):
        raise LeaseHeld(conversation, holder=holder)
    taken = t.fetch_one(
        """
        UPDATE lease SET owner = $2, fence = fence + $3, expires_at = $4
        WHERE conversation_id = $1
        RETURNING conversation_id, owner, fence, expires_at, last_seq
        """,
        conversation,
        owner,
        0 if ours else 1,
        t.now + millis,
    )
    assert taken is not None
    *lease, last_seq = taken
    lost = None if ours or holder is None else OwnerId(holder)
    return AcquiredLease(lease=rows.to_lease(lease), last_seq=last_seq, lost_owner=lost)


def _lock_lease_row(t: Tx, conversation: ConversationId) -> Row:
    # A deletion removes the row, so a conversation being deleted cannot be leased.
    row = t.fetch_one(
        "SELECT owner, expires_at FROM lease WHERE conversation_id = $1 @LOCK", conversation
    )
    if row is None:
        raise NotFound("conversation", conversation)
    return row


def may_take_over(t: Tx, holder: str, expires_at: int, duration: timedelta | None) -> bool:
    """Return whether an unreleased lease may be taken; ``duration`` is our lease time."""
    # An expiry too far ahead for any owner means that the clock jumped back.
    longest = None if duration is None else t.now + 2 * (duration // timedelta(milliseconds=1))
    in_time = t.now < expires_at and (longest is None or expires_at <= longest)
    return not in_time or not t.is_alive(holder)


def renew_lease(t: Tx, lease: Lease, *, duration: timedelta = LEASE_DURATION) -> Lease:
    """
    Extend a lease that is still held.

    :raises LeaseLost: if it is not
    """
    row = t.fetch_one(
        """
        UPDATE lease SET expires_at = $4
        WHERE conversation_id = $1 AND owner = $2 AND fence = $3
        RETURNING conversation_id, owner, fence, expires_at
        """,
        lease.conversation_id,
        lease.owner,
        lease.fence,
        t.now + duration // timedelta(milliseconds=1),
    )
    if row is None:
        raise _lease_lost_error(lease)
    return rows.to_lease(row)


def release_lease(t: Tx, lease: Lease) -> None:
    """Release a lease if still held; a running turn waits for the next owner."""
    t.execute(
        """
        UPDATE lease SET owner = NULL, expires_at = NULL
        WHERE conversation_id = $1 AND owner = $2 AND fence = $3
        """,
        lease.conversation_id,
        lease.owner,
        lease.fence,
    )
    t.notify(lease.conversation_id)


def is_released(t: Tx, lease: Lease) -> bool:
    """Return whether a lease was released, and nobody has taken it since."""
    return t.exists(
        "SELECT 1 FROM lease WHERE conversation_id = $1 AND fence = $2 AND owner IS NULL",
        lease.conversation_id,
        lease.fence,
    )


def reserve_seqs(t: Tx, lease: Lease, count: int, *, unless: EntryId) -> bool:
    """
    Check the fence and reserve the next ``count`` seqs, in one statement.

    One statement, because between a check and a later write another owner could take over.
    The reserved seqs end at the lease's last seq, which does not change until the commit.
    Reserves none and returns ``False`` if the entry ``unless`` is stored, whoever holds the
    lease.

    :raises LeaseLost: if the lease is not held any more
    """
    # Without RETURNING, for which SQLite builds a temporary table: the next statement reads it.
    taken = t.execute(
        """
        UPDATE lease SET last_seq = last_seq + $4, updated_at = $5
        WHERE conversation_id = $1 AND owner = $2 AND fence = $3
          AND NOT EXISTS (SELECT 1 FROM entry WHERE id = $6)
        """,
        lease.conversation_id,
        lease.owner,
        lease.fence,
        count,
        t.now,
        unless,
    )
    if not taken and not t.fetch_one("SELECT 1 FROM entry WHERE id = $1", unless):
        raise _lease_lost_error(lease)
    return bool(taken)


def verify_lease(t: Tx, lease: Lease) -> int:
    """
    Verify that the lease is held, and return the last seq.

    :raises LeaseLost: if it is not held any more
    """
    last_seq = t.fetch_value(
        "SELECT last_seq FROM lease WHERE conversation_id = $1 AND owner = $2 AND fence = $3",
        lease.conversation_id,
        lease.owner,
        lease.fence,
    )
    if last_seq is None:
        raise _lease_lost_error(lease)
    return last_seq


def verify_lease_for_write(t: Tx, lease: Lease) -> int:
    """
    Verify and lock the lease until the commit, and return the last seq.

    :raises LeaseLost: if it is not held any more
    """
    last_seq = t.fetch_value(
        """
        SELECT last_seq FROM lease
        WHERE conversation_id = $1 AND owner = $2 AND fence = $3 @LOCK
        """,
        lease.conversation_id,
        lease.owner,
        lease.fence,
    )
    if last_seq is None:
        raise _lease_lost_error(lease)
    return last_seq


def _lease_lost_error(lease: Lease) -> LeaseLost:
    return LeaseLost(lease.conversation_id, owner=lease.owner, fence=lease.fence)


def list_leased_conversations(t: Tx, owner: OwnerId) -> list[ConversationId]:
    """Return the conversations whose lease this owner holds."""
    return t.fetch_column("SELECT conversation_id FROM lease WHERE owner = $1", owner)
