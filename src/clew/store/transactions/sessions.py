"""Sessions: opening them, and the rotation that closes one and opens its successor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core import session as reasons
from clew.core.session import Head, Session
from clew.core.session_base import Base, BaseItem, EntryRange, InlineMessage
from clew.errors import NotFound, RotationConflict, StoreError
from clew.store.transactions import rows, session_prefixes
from clew.store.transactions.leases import verify_lease_for_write

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, SessionId, SessionIdFactory
    from clew.core.lease import Lease
    from clew.store.contract import Tx

_MAX_ID_TRIES = 100
#: Reasons of sessions that go on with the messages of the one before.
_SAME_MESSAGES = frozenset({reasons.FORGET, reasons.RELOAD})


def get_session(t: Tx, session: SessionId) -> Session:
    """
    Return a session.

    :raises NotFound: if there is no such session
    """
    found = rows.SESSION.fetch_one(t, "WHERE id = $1", session)
    if found is None:
        raise NotFound("session", session)
    return found


def find_session_by_operation(t: Tx, operation: str) -> Session | None:
    """Return the session that an operation opened, or ``None`` if it did not run."""
    return rows.SESSION.fetch_one(t, "WHERE operation = $1", operation)


def get_head(t: Tx, conversation: ConversationId) -> Session:
    """
    Return the current session of a conversation, ended if the conversation is closed.

    :raises NotFound: if there is no such conversation
    """
    found = rows.SESSION.fetch_one(
        t, "WHERE id = (SELECT session_id FROM head WHERE conversation_id = $1)", conversation
    )
    if found is None:
        raise NotFound("conversation", conversation)
    return found


def find_context_change(t: Tx, head: Session) -> Session:
    """Return the session in which the context last got other messages than were appended."""
    found = head
    while found.opened_by in _SAME_MESSAGES and found.predecessor is not None:
        found = get_session(t, found.predecessor)
    return found


def get_base(t: Tx, session: SessionId) -> Base:
    """Return the base of a session."""
    found = t.fetch_all(
        """
        SELECT first_seq, last_seq, format, message FROM base_item
        WHERE session_id = $1 ORDER BY position
        """,
        session,
    )
    return tuple(
        EntryRange(first=first, last=last)
        if message is None
        else InlineMessage(format=format_, message=message)
        for first, last, format_, message in found
    )


def insert_session(  # noqa: PLR0913  (each is a column of its own)
    t: Tx,
    conversation: ConversationId,
    *,
    predecessor: SessionId | None,
    opened_by: str,
    opened_seq: int,
    base: Base,
    operation: str,
    session_ids: SessionIdFactory,
) -> SessionId:
    """Store a session under the first free proposed id; its predecessor must have ended."""
    for _ in range(_MAX_ID_TRIES):
        session = session_ids(t.now)
        if session == predecessor:
            continue
        inserted = t.execute(
            """
            INSERT INTO session (id, conversation_id, predecessor, opened_at, opened_by, opened_seq,
                                 operation)
            VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING
            """,
            session,
            conversation,
            predecessor,
            t.now,
            opened_by,
            opened_seq,
            operation,
        )
        if inserted:
            _insert_base(t, session, base)
            return session
    raise StoreError(
        f"{_MAX_ID_TRIES} proposed session ids were all taken: the generator repeats itself"
    )


def _insert_base(t: Tx, session: SessionId, base: Base) -> None:
    for position, item in enumerate(base):
        t.execute(
            """
            INSERT INTO base_item (session_id, position, first_seq, last_seq, format, message)
            VALUES ($1, $2, $3, $4, $5, $6)
            """,
            session,
            position,
            *_base_item_columns(item),
        )


def _base_item_columns(item: BaseItem) -> tuple[int | None, int | None, str | None, str | None]:
    if isinstance(item, EntryRange):
        return item.first, item.last, None, None
    return None, None, item.format, item.message


def rotate_session(
    t: Tx,
    lease: Lease,
    *,
    operation: str,
    expected: Head,
    base: Base,
    reason: str,
    session_ids: SessionIdFactory,
) -> Session:
    """
    Close the head session, open its successor and move the head.

    The reason becomes the closed head's ``end_reason`` unless it has one, and the
    successor's ``opened_by``. Instructions and tools are rendered anew with the successor's
    first request, except after a rewind, whose context begins as before. Repeating it with
    the same ``operation`` returns the session that the first call opened.

    :raises LeaseLost: if the lease is not held any more
    :raises RotationConflict: if the head or the last seq is not the expected one; nothing
        changed
    """
    if (before := find_session_by_operation(t, operation)) is not None:
        return before
    last_seq = verify_lease_for_write(t, lease)
    head = get_head(t, lease.conversation_id)
    found = Head(session=head.id, last_seq=last_seq)
    if found != expected:
        if (before := find_session_by_operation(t, operation)) is not None:
            return before  # the same call on another connection was faster
        raise RotationConflict(lease.conversation_id, expected=str(expected), head=str(found))
    end_session(t, head.id, reason)
    successor = insert_session(
        t,
        lease.conversation_id,
        predecessor=head.id,
        opened_by=reason,
        opened_seq=last_seq,
        base=base,
        operation=operation,
        session_ids=session_ids,
    )
    if reason == reasons.REWIND:
        session_prefixes.copy_prefix(t, head.id, successor)
    move_head(t, lease.conversation_id, successor)
    return get_session(t, successor)


def move_head(t: Tx, conversation: ConversationId, session: SessionId) -> None:
    """Make a session the current one; no other statement does this."""
    t.execute("UPDATE head SET session_id = $2 WHERE conversation_id = $1", conversation, session)
    t.notify(conversation)


def end_session(t: Tx, session: SessionId, reason: str) -> bool:
    """End a session; ``False`` if it had ended already."""
    return bool(
        t.execute(
            """
            UPDATE session SET ended_at = $2, end_reason = $3
            WHERE id = $1 AND ended_at IS NULL
            """,
            session,
            t.now,
            reason,
        )
    )


def end_head(t: Tx, lease: Lease, reason: str) -> Session:
    """
    End the current session, which closes the conversation; the next message reopens it.

    Repeating it changes nothing; the first reason stays.

    :raises LeaseLost: if the lease is not held any more
    """
    verify_lease_for_write(t, lease)
    head = get_head(t, lease.conversation_id)
    end_session(t, head.id, reason)
    t.notify(lease.conversation_id)
    return get_session(t, head.id)


def list_sessions(t: Tx, conversation: ConversationId) -> list[Session]:
    """Return every session of a conversation, oldest first."""
    found = rows.SESSION.fetch_all(
        t, "WHERE conversation_id = $1 ORDER BY opened_seq, opened_at, id", conversation
    )
    return _order_by_chain(found)


def _order_by_chain(sessions: list[Session]) -> list[Session]:
    # Several may open at one seq in one millisecond: only the chain defines their order.
    following = {session.predecessor: session for session in sessions}
    ordered: list[Session] = []
    while session := following.get(ordered[-1].id if ordered else None):
        ordered.append(session)
    return ordered
