"""Pending titles: asked for before a conversation existed, or not written for a passing reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.store.contract import Tx


def keep_title(t: Tx, conversation: ConversationId, title: str) -> None:
    """Remember a title that is to be given later; the last one asked for counts."""
    t.run(
        """
        INSERT INTO pending_title (conversation_id, title, asked_at) VALUES ($1, $2, $3) ON CONFLICT
        (conversation_id) DO UPDATE SET title = excluded.title, asked_at = excluded.asked_at
        """,
        conversation,
        title,
        t.now,
    )


def pending_title(t: Tx, conversation: ConversationId) -> str | None:
    """The title that waits to be given."""
    row = t.one("SELECT title FROM pending_title WHERE conversation_id = $1", conversation)
    return None if row is None else row[0]


def drop_title(t: Tx, conversation: ConversationId) -> None:
    """It was given, or cannot be: forget it."""
    t.run("DELETE FROM pending_title WHERE conversation_id = $1", conversation)
