"""Lists of the conversations that a scope may see, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.clock import to_millis
from clew.errors import UsageError
from clew.record import Record
from clew.store.transactions import rows

if TYPE_CHECKING:
    from clew.core.conversation import Conversation
    from clew.core.ids import ConversationId, SessionId
    from clew.core.scope import Scope
    from clew.store.contract import Tx

#: Upper bound of a page's size.
MAX_LIMIT = 1000


class ConversationPage(Record):
    """A page of conversations, with the cursor of the next one."""

    items: tuple[Conversation, ...]
    #: Cursor of the next page; ``None`` after the last.
    next: str | None


def list_conversations(
    t: Tx,
    *,
    viewer: Scope,
    title: str = "",
    cursor: str | None = None,
    limit: int = 50,
    adhoc: bool = False,
) -> ConversationPage:
    """
    Return a page of the conversations that ``viewer`` may see, last used first.

    ``title`` is a part of their title.

    :raises UsageError: if the cursor is invalid, or the limit is out of range
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise UsageError(f"limit must be 1 to {MAX_LIMIT}, not {limit}")
    before, below = _parse_cursor(cursor)
    found = rows.CONVERSATION.fetch_all(
        t,
        """
        WHERE (l.updated_at < $1 OR (l.updated_at = $1 AND c.id < $2))
          AND ($3 = 'local' OR c.scope = $3)
          AND c.adhoc <= $4
          AND ($5 = '' OR lower(c.title) LIKE lower($5) ESCAPE '!')
        ORDER BY l.updated_at DESC, c.id DESC LIMIT $6
        """,
        before,
        below,
        viewer,
        int(adhoc),
        _like_pattern(title),
        limit + 1,
    )
    items = tuple(found[:limit])
    more = len(found) > limit
    return ConversationPage(items=items, next=_next_cursor(items[-1]) if more else None)


def _like_pattern(title: str) -> str:
    if not title:
        return ""
    for special in "!%_":
        title = title.replace(special, f"!{special}")
    return f"%{title}%"


def _next_cursor(last: Conversation) -> str:
    return f"{to_millis(last.updated_at)}-{last.id}"


def _parse_cursor(cursor: str | None) -> tuple[int, str]:
    if cursor is None:
        return 2**62, ""
    before, _, below = cursor.partition("-")
    if not (before.isascii() and before.isdigit() and below) or len(before) > 15:
        raise UsageError(f"{cursor!r} is not a cursor: use the value of next of the previous page")
    return int(before), below


def count_entries_by_session(t: Tx, conversation: ConversationId) -> dict[SessionId, int]:
    """Return the number of entries of each session, without its base."""
    return t.fetch_map(
        "SELECT session_id, count(*) FROM entry WHERE conversation_id = $1 GROUP BY session_id",
        conversation,
    )
