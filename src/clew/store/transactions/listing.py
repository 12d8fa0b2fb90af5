"""Lists of conversations, newest first, within what a scope may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.clock import to_millis
from clew.errors import UsageError
from clew.store.transactions import rows

if TYPE_CHECKING:
    from clew.core.conversation import Conversation
    from clew.core.ids import ConversationId, SessionId
    from clew.core.scope import Scope
    from clew.store.contract import Tx

#: More than any page is asked for by mistake.
MOST = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    items: tuple[Conversation, ...]
    #: Give it back for the next page; ``None`` after the last.
    next: str | None


def list_conversations(
    t: Tx,
    *,
    viewer: Scope,
    title: str = "",
    cursor: str | None = None,
    limit: int = 50,
    adhoc: bool = False,
) -> Page:
    """
    The conversations that ``viewer`` may see, the last used first; ``title`` is a part of their
    title.

    :raises UsageError: if the cursor is none that a page gave, or the limit is out of range
    """
    if not 1 <= limit <= MOST:
        raise UsageError(f"limit must be 1 to {MOST}, not {limit}")
    before, below = _cursor(cursor)
    found = t.all(
        f"""
        {rows.CONVERSATION}
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
        _pattern(title),
        limit + 1,
    )
    items = tuple(rows.conversation(row) for row in found[:limit])
    more = len(found) > limit
    return Page(items=items, next=_next(items[-1]) if more else None)


def _pattern(title: str) -> str:
    if not title:
        return ""
    for special in "!%_":
        title = title.replace(special, f"!{special}")
    return f"%{title}%"


def _next(last: Conversation) -> str:
    return f"{to_millis(last.updated_at)}-{last.id}"


def _cursor(cursor: str | None) -> tuple[int, str]:
    if cursor is None:
        return 2**62, ""
    before, _, below = cursor.partition("-")
    if not (before.isascii() and before.isdigit() and below) or len(before) > 15:
        raise UsageError(f"{cursor!r} is no cursor: use the value of next of the page before")
    return int(before), below


def message_counts(t: Tx, conversation: ConversationId) -> dict[SessionId, int]:
    """How many entries each session of a conversation has; its base does not count."""
    found = t.all(
        "SELECT session_id, count(*) FROM entry WHERE conversation_id = $1 GROUP BY session_id",
        conversation,
    )
    return {row[0]: row[1] for row in found}
