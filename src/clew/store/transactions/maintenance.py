"""Maintenance: closes abandoned sessions and removes empty conversations."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from clew.core import session as reasons
from clew.core.ids import ConversationId, SessionId
from clew.store.transactions.clients import count_attached_clients
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


def find_orphaned_compression_sessions(
    t: Tx, *, older_than: timedelta = ORPHANED_AFTER
) -> list[tuple[ConversationId, SessionId]]:
    """
    Return the continuations after a compaction that are no longer used.

    They are open, were opened before ``older_than``, have at least one message of their
    own, and no route, turn, input, delivery or client leads to them.
    """
    found = t.fetch_all(
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
        if not count_attached_clients(t, ConversationId(conversation))
    ]


def finalize_orphaned_compression_sessions(t: Tx, *, older_than: timedelta = ORPHANED_AFTER) -> int:
    """
    End the orphaned continuations and return their count; every message stays.

    The end reason is ``orphaned_compression``.
    """
    count = 0
    for conversation, session in find_orphaned_compression_sessions(t, older_than=older_than):
        if _is_unleased(t, conversation):
            count += end_session(t, session, reasons.ORPHANED_COMPRESSION)
            t.notify(conversation)
    return count


def _is_unleased(t: Tx, conversation: ConversationId) -> bool:
    """Return whether no living owner holds the lease; locked until the commit."""
    row = t.fetch_one("SELECT owner FROM lease WHERE conversation_id = $1 @LOCK", conversation)
    if row is None:
        return False
    (owner,) = row
    return owner is None or not t.is_alive(owner)


def find_empty_ghost_sessions(
    t: Tx, *, older_than: timedelta = GHOST_AFTER
) -> list[ConversationId]:
    """Return the conversations without any message that nothing leads to."""
    found = t.fetch_column(
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
    return [each for each in found if not count_attached_clients(t, each)]


def prune_empty_ghost_sessions(
    t: Tx, *, older_than: timedelta = GHOST_AFTER, notice: str | None = None
) -> int:
    """
    Mark the empty conversations as deleted, and return their count.

    A chat whose route moves to one meanwhile receives the ``notice``.
    """
    ghosts = [
        conversation
        for conversation in find_empty_ghost_sessions(t, older_than=older_than)
        if _is_unleased(t, conversation)
    ]
    return sum(mark_deleted(t, conversation, notice=notice) for conversation in ghosts)
