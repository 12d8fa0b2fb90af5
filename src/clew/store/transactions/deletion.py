"""Deletion: a conversation is gone at once, its rows go in slices, a tombstone stays."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, LiteralString

from clew.core.expired import DELETED
from clew.core.ids import TurnId
from clew.core.route import RouteKey
from clew.errors import ConstraintViolated
from clew.store import search
from clew.store.transactions.deliveries import end_previews
from clew.store.transactions.elsewhere import tell_chats
from clew.store.transactions.entries import last_hash
from clew.store.transactions.inbox import DEDUPE_DAYS
from clew.store.transactions.undelete import keep_for_undo

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.store.contract import Tx

_DAY = 24 * 3600 * 1000
#: Entries in a slice: taking one out of the search index costs more than its row.
_ENTRIES = 25

# In the order in which rows may go: whoever points at a row goes before it.
_BEFORE_ENTRIES: tuple[LiteralString, ...] = (
    """
    DELETE FROM delivery_chunk WHERE (delivery_id, position) IN (
        SELECT k.delivery_id, k.position
        FROM delivery_chunk k JOIN delivery d ON d.id = k.delivery_id
        WHERE d.conversation_id = $1 AND d.state IN ('delivered', 'failed') LIMIT $2
    )
    """,
    # What tells a chat of the deletion stays until it has arrived.
    """
    DELETE FROM delivery
    WHERE n IN (
        SELECT n FROM delivery
        WHERE conversation_id = $1 AND state IN ('delivered', 'failed') LIMIT $2
    )
    """,
    """
    DELETE FROM approval
    WHERE id IN (SELECT id FROM approval WHERE conversation_id = $1 LIMIT $2)
    """,
    """
    DELETE FROM journal WHERE (turn_id, step, call_id) IN (
        SELECT turn_id, step, call_id FROM journal WHERE conversation_id = $1 LIMIT $2
    )
    """,
    """
    DELETE FROM attachment
    WHERE id IN (SELECT id FROM attachment WHERE conversation_id = $1 LIMIT $2)
    """,
    "DELETE FROM usage WHERE id IN (SELECT id FROM usage WHERE conversation_id = $1 LIMIT $2)",
    "DELETE FROM inbox WHERE n IN (SELECT n FROM inbox WHERE conversation_id = $1 LIMIT $2)",
)
_AFTER_ENTRIES: tuple[LiteralString, ...] = (
    "DELETE FROM turn WHERE id IN (SELECT id FROM turn WHERE conversation_id = $1 LIMIT $2)",
    """
    DELETE FROM base_item WHERE (session_id, position) IN (
        SELECT b.session_id, b.position
        FROM base_item b JOIN session s ON s.id = b.session_id
        WHERE s.conversation_id = $1 LIMIT $2
    )
    """,
    """
    DELETE FROM compaction WHERE session_id IN (
        SELECT k.session_id FROM compaction k JOIN session s ON s.id = k.session_id
        WHERE s.conversation_id = $1 LIMIT $2
    )
    """,
    # The newest first: each is the successor of the one before.
    """
    DELETE FROM session WHERE id IN (
        SELECT s.id FROM session s
        WHERE s.conversation_id = $1
          AND NOT EXISTS (SELECT 1 FROM session n WHERE n.predecessor = s.id)
        LIMIT $2
    )
    """,
    "DELETE FROM client WHERE conversation_id = $1 AND $2 > 0",
    "DELETE FROM resent WHERE conversation_id = $1 AND $2 > 0",
    "DELETE FROM pending_title WHERE conversation_id = $1 AND $2 > 0",
    "DELETE FROM setting WHERE scope = $1 AND $2 > 0",
    """
    DELETE FROM conversation
    WHERE id = $1 AND $2 > 0
      AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.conversation_id = $1)
    """,
)


def mark_deleted(
    t: Tx, conversation: ConversationId, *, undo_for: timedelta = timedelta(0)
) -> bool:
    """
    Take a conversation away from everybody; ``False`` if there never was one.

    Whoever holds its lease loses it, its routes are free, its open inputs end as cancelled, its
    open approvals as denied and its unsent deliveries as failed. Its rows are still there, for
    ``delete_slice``; what remains in the end is the tombstone. For ``undo_for`` it can be brought
    back, by ``undelete``. Repeating it changes nothing.
    """
    routes = _take_routes(t, conversation)
    row = t.one(
        "DELETE FROM lease WHERE conversation_id = $1 RETURNING last_seq, fence",
        conversation,
    )
    if row is None:
        return _is_buried(t, conversation)
    last_seq, fence = row
    # One may have been moved here while its lease was waited for; from now on none can.
    routes = sorted({*routes, *_take_routes(t, conversation)})
    _bury(t, conversation, last_seq)
    if undo_for:
        millis = undo_for // timedelta(milliseconds=1)
        keep_for_undo(t, conversation, fence=fence, routes=routes, millis=millis)
    t.run("DELETE FROM head WHERE conversation_id = $1", conversation)
    t.run(
        "UPDATE conversation SET deleting_at = $2, title = NULL, titled_by = NULL WHERE id = $1",
        conversation,
        t.now,
    )
    end_what_is_open(t, conversation)
    tell_chats(t, conversation, routes, DELETED, event=f"{conversation} deleted {t.now}")
    # An answer that was kept for its caller is content too.
    t.run("DELETE FROM idempotency WHERE conversation_id = $1", conversation)
    t.wake(conversation)
    return True


def _take_routes(t: Tx, conversation: ConversationId) -> list[RouteKey]:
    # In one statement: of a route that moves away meanwhile nothing may be told here.
    found = t.all("DELETE FROM route WHERE conversation_id = $1 RETURNING key", conversation)
    return sorted(RouteKey(key) for (key,) in found)


def _is_buried(t: Tx, conversation: ConversationId) -> bool:
    row = t.one("SELECT 1 FROM tombstone WHERE conversation_id = $1", conversation)
    return row is not None


def _bury(t: Tx, conversation: ConversationId, last_seq: int) -> None:
    t.run(
        """
        INSERT INTO tombstone (conversation_id, last_seq, last_hash, deleted_at) VALUES ($1, $2,
                                                                                         $3, $4)
        """,
        conversation,
        last_seq,
        last_hash(t, conversation, last_seq),
        t.now,
    )
    t.run(
        "UPDATE dedupe SET expires_at = $2 WHERE conversation_id = $1 AND expires_at IS NULL",
        conversation,
        t.now + DEDUPE_DAYS * _DAY,
    )


def end_what_is_open(t: Tx, conversation: ConversationId) -> None:
    """End each input, turn, question and delivery, and what is shown of an answer."""
    turns = t.all(
        "SELECT id FROM turn WHERE conversation_id = $1 AND state <> 'done'", conversation
    )
    t.run(
        """
        UPDATE inbox SET outcome = 'cancelled', note = 'the conversation was deleted',
            resolved_at = $2
        WHERE conversation_id = $1 AND outcome IS NULL
        """,
        conversation,
        t.now,
    )
    t.run(
        """
        UPDATE delivery SET state = 'failed', error = 'the conversation was deleted',
            updated_at = $2
        WHERE conversation_id = $1 AND state NOT IN ('delivered', 'failed')
        """,
        conversation,
        t.now,
    )
    t.run(
        """
        UPDATE approval SET state = 'denied', note = 'the conversation was deleted',
            answered_at = $2
        WHERE conversation_id = $1 AND state = 'open'
        """,
        conversation,
        t.now,
    )
    t.run(
        """
        UPDATE turn SET state = 'done', outcome = 'cancelled', stop = COALESCE(stop, 'delete'),
            finished_at = $2
        WHERE conversation_id = $1 AND state <> 'done'
        """,
        conversation,
        t.now,
    )
    for (turn,) in turns:
        end_previews(t, conversation, TurnId(turn))


def delete_slice(t: Tx, conversation: ConversationId, *, rows: int = 500) -> bool:
    """
    Remove at most ``rows`` rows of a conversation that was marked; ``False`` when nothing is left.

    :raises ConstraintViolated: if it was not marked, or can still be brought back
    :raises SearchNotReady: if the search index turns out to be damaged; repeat it after ``condemn``
    """
    lives = "SELECT 1 FROM conversation WHERE id = $1 AND (deleting_at IS NULL OR undo IS NOT NULL)"
    if t.one(lives, conversation) is not None:
        raise ConstraintViolated(
            f"{conversation} was not deleted for good", constraint="delete_after_grace"
        )
    return (
        any(t.run(sql, conversation, rows) for sql in _BEFORE_ENTRIES)
        or _delete_entries(t, conversation, min(rows, _ENTRIES))
        or any(t.run(sql, conversation, rows) for sql in _AFTER_ENTRIES)
    )


def _delete_entries(t: Tx, conversation: ConversationId, most: int) -> bool:
    numbers = search.forget(t, conversation, limit=most)
    for n in numbers:
        t.run("DELETE FROM entry WHERE n = $1", n)
    return bool(numbers)


def half_deleted(t: Tx) -> list[ConversationId]:
    """Conversations whose rows are to go: their grace time is over, or a process died."""
    found = t.all(
        """
        SELECT id FROM conversation
        WHERE deleting_at IS NOT NULL AND (undo_until IS NULL OR undo_until <= $1)
        ORDER BY deleting_at
        """,
        t.now,
    )
    return [row[0] for row in found]


def delete_orphan_blobs(t: Tx, *, rows: int = 50) -> bool:
    """Remove at most ``rows`` blobs that nothing refers to; ``False`` when there are none left."""
    return bool(
        t.run(
            """
            DELETE FROM blob WHERE sha256 IN (
                SELECT b.sha256 FROM blob b
                WHERE NOT EXISTS (SELECT 1 FROM attachment a WHERE a.sha256 = b.sha256) LIMIT $1
            )
            """,
            rows,
        )
    )


def forget_events(t: Tx, *, rows: int = 500) -> int:
    """Forget the events of conversations that were deleted long ago, ``rows`` at most; how many."""
    return t.run(
        """
        DELETE FROM dedupe
        WHERE key IN (SELECT key FROM dedupe WHERE expires_at <= $1 LIMIT $2)
        """,
        t.now,
        rows,
    )
