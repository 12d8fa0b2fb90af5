"""The lease: who may write to a conversation, and the numbers that only its holder is given."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from clew.core.ids import ConversationId, EntryId, OwnerId
from clew.errors import LeaseHeld, LeaseLost, NotFound
from clew.store.transactions import rows

if TYPE_CHECKING:
    from clew.core.lease import Lease
    from clew.store.contract import Row, Tx

#: How long a lease lasts if its holder does not renew it.
DURATION = timedelta(seconds=15)


@dataclass(frozen=True, kw_only=True, slots=True)
class Acquired:
    lease: Lease
    last_seq: int
    #: The owner that it was taken from, which had not let it go; ``None`` where it was free or
    #: ours.
    lost_owner: OwnerId | None


def acquire(
    t: Tx, conversation: ConversationId, *, owner: OwnerId, duration: timedelta = DURATION
) -> Acquired:
    """
    Claim the sole right to write to a conversation.

    Succeeds if it is free, if its owner is dead or its time is over, or if ``owner`` holds it
    already. The fence rises by one unless ``owner`` holds it already.

    :raises NotFound: if there is no such conversation, or it is being deleted
    :raises LeaseHeld: while another living owner holds it
    """
    row = _locked(t, conversation)
    millis = duration // timedelta(milliseconds=1)
    holder, expires_at = row[0], row[1]
    ours = holder == owner
    if holder is not None and not ours and not is_over(t, holder, expires_at, duration):
        raise LeaseHeld(conversation, holder=holder)
    taken = t.one(
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
    lost = None if ours or holder is None else OwnerId(holder)
    return Acquired(lease=rows.lease(taken), last_seq=taken[4], lost_owner=lost)


def _locked(t: Tx, conversation: ConversationId) -> Row:
    # A delete takes the row away, so what is being deleted cannot be leased.
    row = t.one(
        "SELECT owner, expires_at FROM lease WHERE conversation_id = $1 @LOCK", conversation
    )
    if row is None:
        raise NotFound("conversation", conversation)
    return row


def is_over(t: Tx, holder: str, expires_at: int, duration: timedelta | None) -> bool:
    """Whether a lease that was not let go may be taken; ``duration`` is how long ours last."""
    # An expiry that no owner could have set comes from a clock that jumped back.
    longest = None if duration is None else t.now + 2 * (duration // timedelta(milliseconds=1))
    in_time = t.now < expires_at and (longest is None or expires_at <= longest)
    return not in_time or not t.alive(holder)


def renew(t: Tx, lease: Lease, *, duration: timedelta = DURATION) -> Lease:
    """
    Extend a lease that is still held.

    :raises LeaseLost: if it is not
    """
    row = t.one(
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
        raise _lost(lease)
    return rows.lease(row)


def release(t: Tx, lease: Lease) -> None:
    """Let it go, if it is still held; the turn, if one is running, waits for the next owner."""
    t.run(
        """
        UPDATE lease SET owner = NULL, expires_at = NULL
        WHERE conversation_id = $1 AND owner = $2 AND fence = $3
        """,
        lease.conversation_id,
        lease.owner,
        lease.fence,
    )
    t.wake(lease.conversation_id)


def take_numbers(t: Tx, lease: Lease, count: int, *, unless: EntryId) -> bool:
    """
    Check the fence and take the next ``count`` numbers, in one statement.

    One statement, because between a check and a later write another owner could take over. The
    numbers end at the lease's last seq, which nobody else moves until the commit. Takes none and
    returns ``False`` if the entry ``unless`` is stored, whoever holds the lease.

    :raises LeaseLost: if the lease is not held any more
    """
    # Without RETURNING, for which SQLite makes a table each time: the next statement reads it.
    taken = t.run(
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
    if not taken and not t.one("SELECT 1 FROM entry WHERE id = $1", unless):
        raise _lost(lease)
    return bool(taken)


def held(t: Tx, lease: Lease) -> int:
    """
    The last seq, if the lease is held now.

    :raises LeaseLost: if it is not held any more
    """
    row = t.one(
        "SELECT last_seq FROM lease WHERE conversation_id = $1 AND owner = $2 AND fence = $3",
        lease.conversation_id,
        lease.owner,
        lease.fence,
    )
    if row is None:
        raise _lost(lease)
    return row[0]


def hold(t: Tx, lease: Lease) -> int:
    """
    Make sure that the lease is held, and keep it from moving until the commit; the last seq.

    :raises LeaseLost: if it is not held any more
    """
    row = t.one(
        """
        SELECT last_seq FROM lease
        WHERE conversation_id = $1 AND owner = $2 AND fence = $3 @LOCK
        """,
        lease.conversation_id,
        lease.owner,
        lease.fence,
    )
    if row is None:
        raise _lost(lease)
    return row[0]


def _lost(lease: Lease) -> LeaseLost:
    return LeaseLost(lease.conversation_id, owner=lease.owner, fence=lease.fence)


def owned(t: Tx, owner: OwnerId) -> list[ConversationId]:
    """The conversations whose lease this owner holds."""
    found = t.all("SELECT conversation_id FROM lease WHERE owner = $1", owner)
    return [ConversationId(row[0]) for row in found]
