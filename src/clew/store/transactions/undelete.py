"""Deletions that are undone within their grace time, or carried out after it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.clock import from_millis
from clew.core.expired import RESTORED
from clew.core.ids import ConversationId
from clew.core.scope import Scope, can_see
from clew.errors import NotFound
from clew.store.transactions.conversations import claim_route, get_conversation, is_title_taken
from clew.store.transactions.elsewhere import tell_chats

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from clew.core.conversation import Conversation
    from clew.core.route import RouteKey
    from clew.store.contract import Tx


@dataclass(frozen=True, kw_only=True, slots=True)
class DeletedConversation:
    """A deleted conversation that can still be brought back."""

    id: ConversationId
    scope: Scope
    title: str | None
    #: The number of its entries.
    entries: int
    deleted_at: datetime
    #: After this its rows are removed for good.
    undo_until: datetime


_DELETED = """
    SELECT c.id, c.scope, c.undo, b.last_seq, c.deleting_at, c.undo_until
    FROM conversation c JOIN tombstone b ON b.conversation_id = c.id
    WHERE c.deleting_at IS NOT NULL AND c.undo_until > $1
"""


def deleted_conversations(t: Tx, *, viewer: Scope) -> list[DeletedConversation]:
    """Return what can be brought back and ``viewer`` may see, the last deleted first."""
    found = t.all(f"{_DELETED} ORDER BY c.deleting_at DESC, c.id", t.now)
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


def keep_for_undo(
    t: Tx, conversation: ConversationId, *, fence: int, routes: Sequence[RouteKey], millis: int
) -> None:
    """
    Note what a deletion takes away at once: a part of its transaction.

    The deletion has waited for whoever wrote: its lease is gone, so nobody moves the head now.
    """
    # An update, which waits for a title that is being given, and not for inputs that come in.
    kept = t.one(
        "UPDATE conversation SET undo_until = $2 WHERE id = $1 RETURNING title, titled_by",
        conversation,
        t.now + millis,
    )
    head = t.one("SELECT session_id FROM head WHERE conversation_id = $1", conversation)
    assert kept is not None, f"{conversation} had a lease, and is not there"
    assert head is not None, f"{conversation} had a lease, and no head"
    title, titled_by = kept
    undo = {"head": head[0], "fence": fence, "title": title, "titled_by": titled_by}
    t.run(
        "UPDATE conversation SET undo = $2 WHERE id = $1",
        conversation,
        json.dumps({**undo, "routes": list(routes)}),
    )


def undelete(t: Tx, conversation: ConversationId, *, viewer: Scope) -> Conversation:
    """
    Bring a deleted conversation back, with its log, its head, and its routes that are still free.

    What was open when it was deleted stays cancelled. A title that was taken meanwhile is lost.

    :raises NotFound: if it was not deleted, the grace time is over, or ``viewer`` may not see it
    """
    # Locked: it may be brought back, or given up for good, at the same moment.
    row = t.one(f"{_DELETED} AND c.id = $2 @LOCK", t.now, conversation)
    if row is None or not can_see(viewer, Scope(row[1])):
        raise NotFound("deleted conversation", conversation)
    _, scope, text, last_seq, _, _ = row
    undo = json.loads(text)
    keeps = undo["title"] is not None and not is_title_taken(
        t, Scope(scope), undo["title"], by_other_than=conversation
    )
    t.run(
        """
        UPDATE conversation SET deleting_at = NULL, undo_until = NULL, undo = NULL,
            title = $2, titled_by = $3
        WHERE id = $1
        """,
        conversation,
        undo["title"] if keeps else None,
        undo["titled_by"] if keeps else None,
    )
    # Above every fence that was given: whoever held the lease then may not write now.
    t.run(
        """
        INSERT INTO lease (conversation_id, fence, last_seq, updated_at) VALUES ($1, $2, $3, $4)
        """,
        conversation,
        undo["fence"] + 1,
        last_seq,
        t.now,
    )
    t.run(
        "INSERT INTO head (conversation_id, session_id) VALUES ($1, $2)",
        conversation,
        undo["head"],
    )
    t.run("DELETE FROM tombstone WHERE conversation_id = $1", conversation)
    t.run("UPDATE dedupe SET expires_at = NULL WHERE conversation_id = $1", conversation)
    back = [key for key in undo["routes"] if claim_route(t, key, conversation)]
    tell_chats(t, conversation, back, RESTORED, event=f"{conversation} restored {t.now}")
    t.wake(conversation)
    return get_conversation(t, conversation)


def end_grace(t: Tx, conversation: ConversationId, *, at_once: bool = False) -> bool:
    """Let a deletion be carried out; ``False`` if it may still be undone, or was."""
    due = "" if at_once else "AND (undo_until IS NULL OR undo_until <= $2)"
    return bool(
        t.run(
            f"""
            UPDATE conversation SET undo_until = NULL, undo = NULL
            WHERE id = $1 AND deleting_at IS NOT NULL {due}
            """,
            conversation,
            *(() if at_once else (t.now,)),
        )
    )
