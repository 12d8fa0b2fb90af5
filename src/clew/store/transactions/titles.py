"""Pending titles, and the first exchange that a title is generated from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.entry import CAUSED_PATTERN
from clew.store.transactions.conversations import get_conversation, open_route, rename_conversation

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, SessionIdFactory
    from clew.core.route import Route
    from clew.store.contract import Tx


def set_pending_title(t: Tx, conversation: ConversationId, title: str) -> None:
    """Store a title to be applied later, replacing an earlier one."""
    t.execute(
        """
        INSERT INTO pending_title (conversation_id, title, asked_at) VALUES ($1, $2, $3)
        ON CONFLICT (conversation_id) DO UPDATE
        SET title = excluded.title, asked_at = excluded.asked_at
        """,
        conversation,
        title,
        t.now,
    )


def get_pending_title(t: Tx, conversation: ConversationId) -> str | None:
    """Return the pending title, or ``None``."""
    return t.fetch_value("SELECT title FROM pending_title WHERE conversation_id = $1", conversation)


def clear_pending_title(t: Tx, conversation: ConversationId) -> None:
    """Delete the pending title."""
    t.execute("DELETE FROM pending_title WHERE conversation_id = $1", conversation)


def open_with_title(
    t: Tx,
    route: Route,
    title: str,
    *,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
) -> ConversationId:
    """
    Return the conversation of a route; a newly opened one gets a pending title.

    Repeating it with the same ``new_conversation`` changes nothing.
    """
    found = open_route(t, route, new_conversation=new_conversation, session_ids=session_ids)
    if found == new_conversation:
        set_pending_title(t, found, title)
    return found


def set_title(t: Tx, conversation: ConversationId, title: str) -> None:
    """
    Set a person's title, and delete the pending one.

    :raises NotFound: if there is no such conversation
    :raises TitleTaken: if another conversation of the same scope has it
    """
    rename_conversation(t, conversation, title)
    clear_pending_title(t, conversation)


def apply_pending_title(t: Tx, conversation: ConversationId, title: str, *, as_: str) -> None:
    """
    Set the pending title, written as ``as_``, and delete it, unless it was replaced.

    :raises NotFound: if there is no such conversation
    :raises TitleTaken: if another conversation of the same scope has it
    """
    if get_pending_title(t, conversation) == title:
        rename_conversation(t, conversation, as_)
        clear_pending_title(t, conversation)


def discard_pending_title(t: Tx, conversation: ConversationId, title: str) -> None:
    """Delete a pending title that cannot be applied, unless it was replaced meanwhile."""
    t.execute(
        "DELETE FROM pending_title WHERE conversation_id = $1 AND title = $2", conversation, title
    )


def read_first_exchange(t: Tx, conversation: ConversationId) -> tuple[str, str] | None:
    """Return the first text of a person and the first answer; ``None`` before an answer."""
    found = t.fetch_all(
        """
        SELECT e.role, COALESCE(r.text, e.text) FROM entry e
        LEFT JOIN entry_redaction r ON r.conversation_id = e.conversation_id AND r.seq = e.seq
        WHERE e.conversation_id = $1 AND e.kind = 'message' AND e.text <> '' AND e.role <> 'tool'
              AND (e.role <> 'user' OR e.message NOT LIKE $2)
        ORDER BY e.seq LIMIT 20
        """,
        conversation,
        CAUSED_PATTERN,
    )
    said = next((text for role, text in found if role == "user"), None)
    answer = next((text for role, text in found if role == "assistant"), None)
    return None if said is None or answer is None else (said, answer)


def needs_title(t: Tx, conversation: ConversationId) -> bool:
    """Return whether it has no title and appears in lists of conversations."""
    found = get_conversation(t, conversation)
    return found.title is None and not found.adhoc
