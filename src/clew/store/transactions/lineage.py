"""Lineage of a conversation: its sessions with their bases, its origin and its branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.clock import from_millis
from clew.core.session import COMPRESSION
from clew.record import Record
from clew.store.records import RecordQuery
from clew.store.transactions import conversations, sessions

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.conversation import Conversation
    from clew.core.ids import ConversationId, SessionId
    from clew.core.scope import Scope
    from clew.core.session import Session
    from clew.core.session_base import Base
    from clew.store.contract import Tx

#: Upper bound of the branches that are read.
MAX_BRANCHES = 200


class Relative(Record):
    """A conversation from which another was branched, or the other."""

    id: ConversationId
    #: The last entry that both have; ``None`` for an import.
    seq: int | None
    title: str | None
    created_at: datetime


class Lineage(Record):
    """The origin of a conversation, its branches, and its sessions between."""

    conversation: Conversation
    #: ``None`` if there is none, or if it is not here any more.
    origin: Relative | None
    sessions: tuple[Session, ...]
    #: Of the sessions that a compaction opened.
    bases: dict[SessionId, Base]
    #: Oldest first.
    branches: tuple[Relative, ...]


_SELECT = """
    SELECT c.id, c.origin_seq AS seq, c.title, c.created_at
    FROM conversation c
    JOIN head h ON h.conversation_id = c.id
"""
_BRANCH = RecordQuery(Relative, _SELECT, {"created_at": from_millis})


def read_lineage(t: Tx, conversation: ConversationId, *, viewer: Scope) -> Lineage:
    """
    Return the lineage of a conversation, as far as ``viewer`` may see it.

    :raises NotFound: if ``viewer`` can see no such conversation
    """
    found = conversations.get_visible_conversation(t, conversation, viewer=viewer)
    chain = tuple(sessions.list_sessions(t, conversation))
    return Lineage(
        conversation=found,
        origin=_find_origin(t, found, viewer),
        sessions=chain,
        bases={
            one.id: sessions.get_base(t, one.id) for one in chain if one.opened_by == COMPRESSION
        },
        branches=tuple(_list_branches(t, conversation, viewer)),
    )


def _find_origin(t: Tx, found: Conversation, viewer: Scope) -> Relative | None:
    if found.origin is None:
        return None
    origin = _BRANCH.fetch_one(
        t,
        "WHERE c.id = $1 AND c.deleting_at IS NULL AND ($2 = 'local' OR c.scope = $2)",
        found.origin,
        viewer,
    )
    return origin and Relative(
        id=origin.id, seq=found.origin_seq, title=origin.title, created_at=origin.created_at
    )


def _list_branches(t: Tx, conversation: ConversationId, viewer: Scope) -> list[Relative]:
    return _BRANCH.fetch_all(
        t,
        """
        WHERE c.origin = $1 AND c.deleting_at IS NULL AND ($2 = 'local' OR c.scope = $2)
        ORDER BY c.created_at, c.id LIMIT $3
        """,
        conversation,
        viewer,
        MAX_BRANCHES,
    )
