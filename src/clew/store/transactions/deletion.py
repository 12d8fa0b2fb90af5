"""Deletion: a conversation vanishes at once, its rows go in slices, a tombstone stays."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, LiteralString

from clew.core.ids import TurnId, new_session_id
from clew.core.route import RouteKey
from clew.core.system_note import SystemNote
from clew.errors import ConstraintViolated
from clew.store import search
from clew.store.feature_migrations import delete_feature_rows
from clew.store.transactions.chat_notices import notify_chats
from clew.store.transactions.deliveries import close_previews
from clew.store.transactions.entries import get_entry_hash
from clew.store.transactions.inbox import DEDUPE_DAYS
from clew.store.transactions.redactions import finish_queued_redactions
from clew.store.transactions.undelete import store_undo_data

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.store.contract import Tx

_DAY_MS = 24 * 3600 * 1000
#: Fewer than other rows, because removing an entry from the search index is costly.
_ENTRIES_PER_SLICE = 25
#: Days to deliver the notice about a deletion: its channel may be gone for good.
NOTICE_DAYS = 7

# In deletion order: referencing rows go before the rows they reference.
_BEFORE_ENTRIES: tuple[LiteralString, ...] = (
    """
    DELETE FROM delivery_chunk WHERE (delivery_id, position) IN (
        SELECT k.delivery_id, k.position
        FROM delivery_chunk k JOIN delivery d ON d.id = k.delivery_id
        WHERE d.conversation_id = $1 AND d.state IN ('delivered', 'failed') LIMIT $2
    )
    """,
    # The notice about the deletion stays until it is delivered, or too old. Where it is delivered
    # between these two statements, its parts go with the next slice, and it after them.
    """
    DELETE FROM delivery
    WHERE n IN (
        SELECT d.n FROM delivery d
        WHERE d.conversation_id = $1 AND d.state IN ('delivered', 'failed')
          AND NOT EXISTS (SELECT 1 FROM delivery_chunk k WHERE k.delivery_id = d.id)
        LIMIT $2
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
    DELETE FROM approval_grant
    WHERE id IN (SELECT id FROM approval_grant WHERE conversation_id = $1 LIMIT $2)
    """,
    """
    DELETE FROM attachment
    WHERE id IN (SELECT id FROM attachment WHERE conversation_id = $1 LIMIT $2)
    """,
    "DELETE FROM usage WHERE id IN (SELECT id FROM usage WHERE conversation_id = $1 LIMIT $2)",
    "DELETE FROM inbox WHERE n IN (SELECT n FROM inbox WHERE conversation_id = $1 LIMIT $2)",
)
_AFTER_ENTRIES: tuple[LiteralString, ...] = (
    "DELETE FROM entry_redaction WHERE conversation_id = $1 AND $2 > 0",
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
    # Newest first, because each session references its predecessor.
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
    t: Tx,
    conversation: ConversationId,
    *,
    undo_for: timedelta = timedelta(0),
    notice: str | None = None,
) -> bool:
    """
    Make a conversation disappear for everyone; ``False`` if it never existed.

    Its lease is lost, its routes are free, its open inputs end as cancelled, its open
    approvals as denied and its unsent deliveries as failed. Its rows remain for
    ``delete_slice``; in the end only the tombstone is left. For ``undo_for`` it can be
    restored by ``undelete_conversation``. Its chats receive the ``notice``. Repeating it
    changes nothing.
    """
    routes = _delete_routes(t, conversation)
    row = t.fetch_one(
        "DELETE FROM lease WHERE conversation_id = $1 RETURNING last_seq, fence",
        conversation,
    )
    if row is None:
        return _has_tombstone(t, conversation)
    last_seq, fence = row
    # A route may have moved here while waiting for the lease; from now on none can.
    routes = sorted({*routes, *_delete_routes(t, conversation)})
    _insert_tombstone(t, conversation, last_seq)
    if undo_for:
        millis = undo_for // timedelta(milliseconds=1)
        store_undo_data(t, conversation, fence=fence, routes=routes, millis=millis)
        finish_queued_redactions(t, conversation, session_ids=new_session_id)
    t.execute("DELETE FROM head WHERE conversation_id = $1", conversation)
    t.execute(
        "UPDATE conversation SET deleting_at = $2, title = NULL, titled_by = NULL WHERE id = $1",
        conversation,
        t.now,
    )
    cancel_open_work(t, conversation)
    notify_chats(t, conversation, routes, notice, event=f"{conversation} deleted {t.now}")
    # Answers stored for idempotency keys are content too.
    t.execute("DELETE FROM idempotency WHERE conversation_id = $1", conversation)
    t.notify(conversation)
    return True


def _delete_routes(t: Tx, conversation: ConversationId) -> list[RouteKey]:
    # In one statement, so that no notice goes to a route that moves away meanwhile.
    found = t.fetch_all("DELETE FROM route WHERE conversation_id = $1 RETURNING key", conversation)
    return sorted(RouteKey(key) for (key,) in found)


def _has_tombstone(t: Tx, conversation: ConversationId) -> bool:
    return t.exists("SELECT 1 FROM tombstone WHERE conversation_id = $1", conversation)


def _insert_tombstone(t: Tx, conversation: ConversationId, last_seq: int) -> None:
    t.execute(
        """
        INSERT INTO tombstone (conversation_id, last_seq, last_hash, deleted_at) VALUES ($1, $2,
                                                                                         $3, $4)
        """,
        conversation,
        last_seq,
        get_entry_hash(t, conversation, last_seq),
        t.now,
    )
    t.execute(
        "UPDATE dedupe SET expires_at = $2 WHERE conversation_id = $1 AND expires_at IS NULL",
        conversation,
        t.now + DEDUPE_DAYS * _DAY_MS,
    )


def cancel_open_work(t: Tx, conversation: ConversationId) -> None:
    """End each open input, turn, approval and delivery, and close the answer previews."""
    turns = t.fetch_all(
        "SELECT id FROM turn WHERE conversation_id = $1 AND state <> 'done'", conversation
    )
    t.execute(
        """
        UPDATE inbox SET outcome = 'cancelled', note = $2, resolved_at = $3
        WHERE conversation_id = $1 AND outcome IS NULL
        """,
        conversation,
        SystemNote.CONVERSATION_DELETED.value,
        t.now,
    )
    t.execute(
        """
        UPDATE delivery SET state = 'failed', error = $2, updated_at = $3
        WHERE conversation_id = $1 AND state NOT IN ('delivered', 'failed')
        """,
        conversation,
        SystemNote.CONVERSATION_DELETED.value,
        t.now,
    )
    t.execute(
        """
        UPDATE approval SET state = 'denied', note = $2, answered_at = $3
        WHERE conversation_id = $1 AND state = 'open'
        """,
        conversation,
        SystemNote.CONVERSATION_DELETED.value,
        t.now,
    )
    t.execute(
        """
        UPDATE turn SET state = 'done', outcome = 'cancelled', stop = COALESCE(stop, 'delete'),
            finished_at = $2
        WHERE conversation_id = $1 AND state <> 'done'
        """,
        conversation,
        t.now,
    )
    for (turn,) in turns:
        close_previews(t, conversation, TurnId(turn))


def delete_slice(t: Tx, conversation: ConversationId, *, rows: int = 500) -> bool:
    """
    Delete at most ``rows`` rows of a deleted conversation; ``False`` if none are left.

    :raises ConstraintViolated: if it is not marked, or can still be restored
    :raises SearchNotReady: if the search index is damaged; repeat it after ``mark_damaged``
    """
    lives = "SELECT 1 FROM conversation WHERE id = $1 AND (deleting_at IS NULL OR undo IS NOT NULL)"
    if t.fetch_one(lives, conversation) is not None:
        raise ConstraintViolated(
            f"{conversation} was not deleted for good", constraint="delete_after_grace"
        )
    return (
        delete_feature_rows(t, conversation, rows)
        or any(t.execute(sql, conversation, rows) for sql in _BEFORE_ENTRIES)
        or _delete_entries(t, conversation, min(rows, _ENTRIES_PER_SLICE))
        or any(t.execute(sql, conversation, rows) for sql in _AFTER_ENTRIES)
        # Last, since it holds back only what is left; the next slice removes it.
        or _expire_notices(t, conversation)
    )


def _expire_notices(t: Tx, conversation: ConversationId) -> bool:
    changed = t.execute(
        """
        UPDATE delivery SET state = 'failed', error = $2, updated_at = $3
        WHERE conversation_id = $1 AND state NOT IN ('delivered', 'failed') AND created_at <= $4
        """,
        conversation,
        SystemNote.NOT_IN_TIME.value,
        t.now,
        t.now - NOTICE_DAYS * _DAY_MS,
    )
    return changed > 0


def _delete_entries(t: Tx, conversation: ConversationId, most: int) -> bool:
    numbers = search.unindex_entries(t, conversation, limit=most)
    for n in numbers:
        t.execute("DELETE FROM entry WHERE n = $1", n)
    return bool(numbers)


def list_pending_deletions(t: Tx) -> list[ConversationId]:
    """Return the deleted conversations whose rows remain and whose grace time is over."""
    return t.fetch_column(
        """
        SELECT id FROM conversation
        WHERE deleting_at IS NOT NULL AND (undo_until IS NULL OR undo_until <= $1)
        ORDER BY deleting_at
        """,
        t.now,
    )


def delete_orphan_blobs(t: Tx, *, rows: int = 50) -> bool:
    """Delete at most ``rows`` unreferenced blobs; ``False`` when none are left."""
    return bool(
        t.execute(
            """
            DELETE FROM blob WHERE sha256 IN (
                SELECT b.sha256 FROM blob b
                WHERE NOT EXISTS (SELECT 1 FROM attachment a WHERE a.sha256 = b.sha256) LIMIT $1
            )
            """,
            rows,
        )
    )


def delete_expired_event_keys(t: Tx, *, rows: int = 500) -> int:
    """Delete at most ``rows`` expired event keys of deleted conversations; return their count."""
    return t.execute(
        """
        DELETE FROM dedupe
        WHERE key IN (SELECT key FROM dedupe WHERE expires_at <= $1 LIMIT $2)
        """,
        t.now,
        rows,
    )
