"""Maintenance: what nobody will come back to is closed; nothing that was said is lost."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from clew.core import session as reasons
from clew.core.ids import ConversationId, SessionId
from clew.store.transactions.clients import attached
from clew.store.transactions.deletion import mark_deleted
from clew.store.transactions.sessions import end_session

if TYPE_CHECKING:
    from clew.store.contract import Tx

ORPHANED_AFTER = timedelta(days=7)
GHOST_AFTER = timedelta(days=1)

_UNUSED = """
      AND NOT EXISTS (SELECT 1 FROM route r WHERE r.conversation_id = s.conversation_id)
      AND NOT EXISTS (
          SELECT 1 FROM turn t WHERE t.conversation_id = s.conversation_id AND t.state <> 'done'
      )
      AND NOT EXISTS (
          SELECT 1 FROM inbox i WHERE i.conversation_id = s.conversation_id AND i.outcome IS NULL
      )
      AND NOT EXISTS (
          SELECT 1 FROM delivery d
          WHERE d.conversation_id = s.conversation_id
            AND d.state NOT IN ('delivered', 'failed')
      )
"""


def orphaned_compression_sessions(
    t: Tx, *, older_than: timedelta = ORPHANED_AFTER
) -> list[tuple[ConversationId, SessionId]]:
    """
    Continuations after a compaction that nobody uses any more.

    Open, opened before ``older_than``, with at least one message of their own, and no route, turn,
    input, delivery or client that would come back to them.
    """
    found = t.all(
        f"""
        SELECT s.conversation_id, s.id
        FROM session s JOIN session p ON p.id = s.predecessor
        WHERE s.ended_at IS NULL AND s.opened_at < $1 AND p.end_reason = $2
          AND EXISTS (
              SELECT 1 FROM entry e
              WHERE e.conversation_id = s.conversation_id AND e.seq > s.opened_seq
                AND e.session_id = s.id
          )
          {_UNUSED}
        ORDER BY s.opened_at
        """,
        t.now - older_than // timedelta(milliseconds=1),
        reasons.COMPRESSION,
    )
    return [
        (ConversationId(conversation), SessionId(session))
        for conversation, session in found
        if not attached(t, ConversationId(conversation))
    ]


def finalize_orphaned_compression_sessions(t: Tx, *, older_than: timedelta = ORPHANED_AFTER) -> int:
    """End them, with the reason ``orphaned_compression``; how many. Every message stays."""
    count = 0
    for conversation, session in orphaned_compression_sessions(t, older_than=older_than):
        if _at_rest(t, conversation):
            count += end_session(t, session, reasons.ORPHANED_COMPRESSION)
            t.wake(conversation)
    return count


def _at_rest(t: Tx, conversation: ConversationId) -> bool:
    """Whether nobody holds the lease; nobody will before the commit."""
    row = t.one("SELECT owner FROM lease WHERE conversation_id = $1 @LOCK", conversation)
    return row is not None and (row[0] is None or not t.alive(row[0]))


def empty_ghost_sessions(t: Tx, *, older_than: timedelta = GHOST_AFTER) -> list[ConversationId]:
    """Conversations in which nothing was ever said and that nothing leads to."""
    found = t.all(
        f"""
        SELECT s.conversation_id
        FROM session s JOIN conversation c ON c.id = s.conversation_id
        JOIN lease l ON l.conversation_id = c.id
        WHERE s.predecessor IS NULL AND s.opened_at < $1 AND l.last_seq = 0 AND c.title IS NULL
          AND NOT EXISTS (SELECT 1 FROM base_item b WHERE b.session_id = s.id)
          {_UNUSED}
        ORDER BY s.opened_at
        """,
        t.now - older_than // timedelta(milliseconds=1),
    )
    return [ConversationId(row[0]) for row in found if not attached(t, ConversationId(row[0]))]


def prune_empty_ghost_sessions(t: Tx, *, older_than: timedelta = GHOST_AFTER) -> int:
    """Take them away; how many. Their rows go with the next slices of deletion."""
    ghosts = [
        conversation
        for conversation in empty_ghost_sessions(t, older_than=older_than)
        if _at_rest(t, conversation)
    ]
    return sum(mark_deleted(t, conversation) for conversation in ghosts)
