"""Deletions that are undone within their grace time, or become final after it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from clew.clock import from_millis
from clew.core import session as reasons
from clew.core.ids import ConversationId, OwnerId, new_session_id
from clew.core.scope import Scope, can_see
from clew.core.session_base import extend_base
from clew.errors import NotFound
from clew.record import Record
from clew.store.transactions import leases
from clew.store.transactions.chat_notices import notify_chats
from clew.store.transactions.conversations import claim_route, get_conversation, is_title_taken
from clew.store.transactions.rewinds import find_boundary, rewind_context
from clew.store.transactions.sessions import (
    end_session,
    find_session_by_operation,
    get_base,
    get_head,
    get_session,
    insert_session,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from clew.core.conversation import Conversation
    from clew.core.ids import SessionIdFactory
    from clew.core.route import RouteKey
    from clew.store.contract import Tx


#: Holds the lease inside the transaction that restores a conversation.
_OWNER: Final = OwnerId("own_undelete")


class DeletedConversation(Record):
    """A deleted conversation that can still be restored."""

    id: ConversationId
    scope: Scope
    title: str | None
    #: Number of its entries.
    entries: int
    deleted_at: datetime
    #: After this its rows are deleted permanently.
    undo_until: datetime


_DELETED = """
    SELECT c.id, c.scope, c.undo, b.last_seq, c.deleting_at, c.undo_until
    FROM conversation c JOIN tombstone b ON b.conversation_id = c.id
    WHERE c.deleting_at IS NOT NULL AND c.undo_until > $1
"""


def list_deleted_conversations(t: Tx, *, viewer: Scope) -> list[DeletedConversation]:
    """Return the restorable conversations that ``viewer`` may see, last deleted first."""
    found = t.fetch_all(f"{_DELETED} ORDER BY c.deleting_at DESC, c.id", t.now)
    return [
        DeletedConversation(
            id=ConversationId(conversation),
            scope=Scope(scope),
            title=json.loads(undo)["title"],
            entries=last_seq,
            deleted_at=from_millis(deleted_at),
            undo_until=from_millis(until),
        )
        for conversation, scope, undo, last_seq, deleted_at, until in found
        if can_see(viewer, Scope(scope))
    ]


def store_undo_data(
    t: Tx, conversation: ConversationId, *, fence: int, routes: Sequence[RouteKey], millis: int
) -> None:
    """
    Store the data that a deletion removes at once, inside its transaction.

    The deletion has already removed the lease, so no writer can move the head now.
    """
    # An update, which waits for a concurrent title change but not for incoming inputs.
    kept = t.fetch_one(
        "UPDATE conversation SET undo_until = $2 WHERE id = $1 RETURNING title, titled_by",
        conversation,
        t.now + millis,
    )
    head = t.fetch_value("SELECT session_id FROM head WHERE conversation_id = $1", conversation)
    assert kept is not None, f"{conversation} had a lease, and is not there"
    assert head is not None, f"{conversation} had a lease, and no head"
    title, titled_by = kept
    undo = {"head": head, "fence": fence, "title": title, "titled_by": titled_by}
    t.execute(
        "UPDATE conversation SET undo = $2 WHERE id = $1",
        conversation,
        json.dumps({**undo, "routes": list(routes)}),
    )


def undelete_conversation(
    t: Tx, conversation: ConversationId, *, viewer: Scope, notice: str | None = None
) -> Conversation:
    """
    Restore a deleted conversation with its log, head, and routes that are still free.

    Work that was open when it was deleted stays cancelled; calls of tools that it was making are
    left out of the context. A title taken meanwhile is lost.
    The chats of its routes receive the ``notice``.

    :raises NotFound: if it was not deleted, the grace time is over, or ``viewer`` may not
        see it
    """
    # Locked against a concurrent restore or permanent deletion.
    row = t.fetch_one(f"{_DELETED} AND c.id = $2 @LOCK", t.now, conversation)
    if row is None:
        raise NotFound("deleted conversation", conversation)
    _, scope, text, last_seq, _, _ = row
    if not can_see(viewer, Scope(scope)):
        raise NotFound("deleted conversation", conversation)
    undo = json.loads(text)
    keeps = undo["title"] is not None and not is_title_taken(
        t, Scope(scope), undo["title"], by_other_than=conversation
    )
    t.execute(
        """
        UPDATE conversation SET deleting_at = NULL, undo_until = NULL, undo = NULL,
            title = $2, titled_by = $3
        WHERE id = $1
        """,
        conversation,
        undo["title"] if keeps else None,
        undo["titled_by"] if keeps else None,
    )
    # Above every earlier fence, so that no former lease holder can write.
    t.execute(
        """
        INSERT INTO lease (conversation_id, fence, last_seq, updated_at) VALUES ($1, $2, $3, $4)
        """,
        conversation,
        undo["fence"] + 1,
        last_seq,
        t.now,
    )
    t.execute(
        "INSERT INTO head (conversation_id, session_id) VALUES ($1, $2)",
        conversation,
        undo["head"],
    )
    t.execute("DELETE FROM tombstone WHERE conversation_id = $1", conversation)
    t.execute("UPDATE dedupe SET expires_at = NULL WHERE conversation_id = $1", conversation)
    _leave_out_open_calls(t, conversation, last_seq)
    back = [key for key in undo["routes"] if claim_route(t, key, conversation)]
    notify_chats(t, conversation, back, notice, event=f"{conversation} restored {t.now}")
    t.notify(conversation)
    return get_conversation(t, conversation)


def _leave_out_open_calls(t: Tx, conversation: ConversationId, last_seq: int) -> None:
    """Go back to before the calls that a turn was making when it was cancelled by the deletion."""
    if find_boundary(t, conversation, last_seq) == last_seq:
        return
    head = get_head(t, conversation)
    # The row is new in this transaction, so nobody else can hold it.
    lease = leases.acquire_lease(t, conversation, owner=_OWNER).lease
    opened = rewind_context(
        t,
        lease,
        to=last_seq,
        operation=f"{conversation}:undelete:{last_seq}:{head.id}",
        session_ids=new_session_id,
    )
    if head.end_reason is not None:
        end_session(t, opened.id, head.end_reason)
    leases.release_lease(t, lease)


def list_restorable(t: Tx, scope: Scope | None) -> list[ConversationId]:
    """Return the deleted conversations of a scope, or of all, that can still be restored."""
    return t.fetch_column(
        """
        SELECT id FROM conversation
        WHERE deleting_at IS NOT NULL AND undo_until > $1 AND ($2 = '' OR scope = $2) ORDER BY id
        """,
        t.now,
        scope or "",
    )


def replace_restored_session(
    t: Tx, conversation: ConversationId, *, name: str, session_ids: SessionIdFactory
) -> None:
    """
    Have a deleted conversation go on in a new session with the same context if it is restored.

    It has no lease, and its row is locked, so no writer can move the head now. Repeating it
    with the same ``name`` changes nothing.
    """
    text, last_seq = t.fetch_one(
        """
        SELECT c.undo, (SELECT b.last_seq FROM tombstone b WHERE b.conversation_id = c.id)
        FROM conversation c WHERE c.id = $1 AND c.undo IS NOT NULL @LOCK
        """,
        conversation,
    ) or (None, 0)
    operation = f"{conversation}:{name}"
    if text is None or find_session_by_operation(t, operation) is not None:
        return
    undo = json.loads(text)
    head = get_session(t, undo["head"])
    end_session(t, head.id, reasons.FORGET)
    opened = insert_session(
        t,
        conversation,
        predecessor=head.id,
        opened_by=reasons.FORGET,
        opened_seq=last_seq,
        base=extend_base(get_base(t, head.id), opened_seq=head.opened_seq, last_seq=last_seq),
        operation=operation,
        session_ids=session_ids,
    )
    if head.end_reason is not None:
        end_session(t, opened, head.end_reason)
    undo["head"] = opened
    t.execute("UPDATE conversation SET undo = $2 WHERE id = $1", conversation, json.dumps(undo))


def end_grace_period(t: Tx, conversation: ConversationId, *, at_once: bool = False) -> bool:
    """Make a deletion final; ``False`` if its grace time is not over or it was undone."""
    due = "" if at_once else "AND (undo_until IS NULL OR undo_until <= $2)"
    return bool(
        t.execute(
            f"""
            UPDATE conversation SET undo_until = NULL, undo = NULL
            WHERE id = $1 AND deleting_at IS NOT NULL {due}
            """,
            conversation,
            *(() if at_once else (t.now,)),
        )
    )
