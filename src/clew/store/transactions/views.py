"""Conversations with what belongs to them: one, or a page of them, as they are at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.store.transactions import conversations, listing, sessions, usage

if TYPE_CHECKING:
    from clew.core.conversation import Conversation
    from clew.core.ids import ConversationId, SessionId
    from clew.core.route import RouteKey
    from clew.core.scope import Scope
    from clew.core.session import Session
    from clew.store.contract import Tx
    from clew.store.transactions.usage import Used


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversationView:
    """A conversation with what belongs to it."""

    conversation: Conversation
    routes: tuple[RouteKey, ...]
    sessions: tuple[Session, ...]
    #: Entries of each session.
    counts: dict[SessionId, int]
    usage: Used


@dataclass(frozen=True, kw_only=True, slots=True)
class ViewPage:
    """As ``listing.Page``, of views."""

    items: tuple[ConversationView, ...]
    next: str | None


def view(t: Tx, conversation: ConversationId, *, viewer: Scope) -> ConversationView:
    """:raises NotFound: if there is no such conversation in what ``viewer`` may see"""
    return _view(t, conversations.visible(t, conversation, viewer=viewer))


def views(
    t: Tx,
    *,
    viewer: Scope,
    title: str = "",
    cursor: str | None = None,
    limit: int = 50,
    adhoc: bool = False,
) -> ViewPage:
    """As ``listing.list_conversations``, with what belongs to each."""
    page = listing.list_conversations(
        t, viewer=viewer, title=title, cursor=cursor, limit=limit, adhoc=adhoc
    )
    return ViewPage(items=tuple(_view(t, each) for each in page.items), next=page.next)


def _view(t: Tx, found: Conversation) -> ConversationView:
    return ConversationView(
        conversation=found,
        routes=tuple(conversations.routes_of(t, found.id)),
        sessions=tuple(sessions.lineage(t, found.id)),
        counts=listing.message_counts(t, found.id),
        usage=usage.usage_of(t, found.id),
    )
