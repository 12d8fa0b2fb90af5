"""Lists of the conversations that a scope may see, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.clock import from_millis, to_millis
from clew.core.conversation import ALL_CONVERSATIONS, ConversationFilter
from clew.core.route import quote_part
from clew.core.scope import LOCAL
from clew.errors import UsageError
from clew.record import Record
from clew.store.records import RecordQuery
from clew.store.transactions import rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from clew.core.conversation import Conversation
    from clew.core.ids import SessionId
    from clew.core.scope import Scope
    from clew.core.session import Session
    from clew.store.contract import Tx

#: Upper bound of a page's size.
MAX_LIMIT = 1000


class ScopeCount(Record):
    """A person or a chat, with the number of their conversations."""

    scope: Scope
    conversations: int
    updated_at: datetime


_SCOPES = RecordQuery(
    ScopeCount,
    """
    SELECT c.scope, count(*) AS conversations, max(l.updated_at) AS updated_at
    FROM conversation c
    JOIN head h ON h.conversation_id = c.id
    JOIN lease l ON l.conversation_id = c.id
    """,
    {"updated_at": from_millis},
)


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
    wanted: ConversationFilter = ALL_CONVERSATIONS,
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
          AND ($7 = '' OR c.scope = $7)
          AND ($8 = '' OR lower(c.scope) LIKE $8 ESCAPE '!'
               OR lower(c.scope) LIKE $9 ESCAPE '!' OR lower(c.scope) LIKE $10 ESCAPE '!')
          AND l.updated_at >= $11 AND l.updated_at < $12
        ORDER BY l.updated_at DESC, c.id DESC LIMIT $6
        """,
        before,
        below,
        viewer,
        int(adhoc),
        _like_pattern(title),
        limit + 1,
        wanted.scope,
        *_channel_patterns(wanted.channel),
        wanted.since,
        wanted.until,
    )
    items = tuple(found[:limit])
    more = len(found) > limit
    return ConversationPage(items=items, next=_next_cursor(items[-1]) if more else None)


def list_scopes(t: Tx, *, viewer: Scope, limit: int = 200) -> list[ScopeCount]:
    """Return the people and chats with conversations that ``viewer`` may see, last used first."""
    return _SCOPES.fetch_all(
        t,
        """
        WHERE c.adhoc = 0 AND ($1 = 'local' OR c.scope = $1)
        GROUP BY c.scope ORDER BY max(l.updated_at) DESC, c.scope LIMIT $2
        """,
        viewer,
        limit,
    )


def _like_pattern(title: str) -> str:
    return f"%{_escape(title)}%" if title else ""


def _channel_patterns(channel: str) -> tuple[str, str, str]:
    """Return patterns of the scopes of a channel: its people, its chats, those of its account."""
    if channel in ("", LOCAL):
        return channel, channel, channel
    part = _escape(quote_part(channel).lower())
    return f"person:{part}:%", f"chat:{part}:%", f"%:account:{part}"


def _escape(text: str) -> str:
    for special in "!%_":
        text = text.replace(special, f"!{special}")
    return text


def _next_cursor(last: Conversation) -> str:
    return f"{to_millis(last.updated_at)}-{last.id}"


def _parse_cursor(cursor: str | None) -> tuple[int, str]:
    if cursor is None:
        return 2**62, ""
    before, _, below = cursor.partition("-")
    if not (before.isascii() and before.isdigit() and below) or len(before) > 15:
        raise UsageError(f"{cursor!r} is not a cursor: use the value of next of the previous page")
    return int(before), below


def count_entries(chain: Sequence[Session], last_seq: int) -> dict[SessionId, int]:
    """
    Return the number of entries of each session, without its base.

    They are numbered without gaps, from behind the one after which a session opened: none of
    them has to be read.
    """
    ends = [*(session.opened_seq for session in chain[1:]), last_seq]
    return {
        session.id: end - session.opened_seq
        for session, end in zip(chain, ends, strict=bool(chain))
    }
