"""Pending titles: asked for before a conversation existed, or not written for a passing reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.store.transactions.conversations import get_conversation, open_route, rename

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, SessionIdFactory
    from clew.core.route import Route
    from clew.store.contract import Tx


def keep_title(t: Tx, conversation: ConversationId, title: str) -> None:
    """Remember a title that is to be given later; the last one asked for counts."""
    t.run(
        """
        INSERT INTO pending_title (conversation_id, title, asked_at) VALUES ($1, $2, $3)
        ON CONFLICT (conversation_id) DO UPDATE
        SET title = excluded.title, asked_at = excluded.asked_at
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


def open_with_title(
    t: Tx,
    route: Route,
    title: str,
    *,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
) -> ConversationId:
    """
    The conversation that a route resolves to; one that is opened for it gets the title later.

    Repeating it with the same ``new_conversation`` changes nothing.
    """
    found = open_route(t, route, new_conversation=new_conversation, session_ids=session_ids)
    if found == new_conversation:
        keep_title(t, found, title)
    return found


def give_title(t: Tx, conversation: ConversationId, title: str) -> None:
    """
    Give a person's title, and forget one that waits.

    :raises NotFound: if there is no such conversation
    :raises TitleTaken: if another conversation of the same scope has it
    """
    rename(t, conversation, title)
    drop_title(t, conversation)


def give_pending_title(t: Tx, conversation: ConversationId, title: str, *, as_: str) -> None:
    """
    Give the title that waits, written as ``as_``, and forget it; unless another one waits now.

    :raises NotFound: if there is no such conversation
    :raises TitleTaken: if another conversation of the same scope has it
    """
    if pending_title(t, conversation) == title:
        rename(t, conversation, as_)
        drop_title(t, conversation)


def drop_this_title(t: Tx, conversation: ConversationId, title: str) -> None:
    """It cannot be given: forget it, unless another one was asked for meanwhile."""
    t.run(
        "DELETE FROM pending_title WHERE conversation_id = $1 AND title = $2", conversation, title
    )


def first_exchange(t: Tx, conversation: ConversationId) -> tuple[str, str] | None:
    """What a person said first and what was answered; ``None`` before there is an answer."""
    found = t.all(
        """
        SELECT role, text FROM entry
        WHERE conversation_id = $1 AND kind = 'message' AND text <> '' AND role <> 'tool'
        ORDER BY seq LIMIT 20
        """,
        conversation,
    )
    said = next((row[1] for row in found if row[0] == "user"), None)
    answer = next((row[1] for row in found if row[0] == "assistant"), None)
    return None if said is None or answer is None else (said, answer)


def needs_title(t: Tx, conversation: ConversationId) -> bool:
    """Whether nobody has named it, and it is one that people see in their lists."""
    found = get_conversation(t, conversation)
    return found.title is None and not found.adhoc
