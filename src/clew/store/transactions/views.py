"""Conversations with their routes, sessions and usage, read in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.conversation import ALL_CONVERSATIONS, IMPORTED_FROM
from clew.record import Record
from clew.store.transactions import conversations, listing, sessions, settings, usage

if TYPE_CHECKING:
    from clew.core.conversation import Conversation, ConversationFilter
    from clew.core.ids import ConversationId, SessionId
    from clew.core.route import RouteKey
    from clew.core.scope import Scope
    from clew.core.session import Session
    from clew.store.contract import Tx
    from clew.store.transactions.usage import TokenUsage


class ConversationView(Record):
    """A conversation with its routes, sessions, entry counts and usage."""

    conversation: Conversation
    routes: tuple[RouteKey, ...]
    sessions: tuple[Session, ...]
    #: Number of entries of each session.
    counts: dict[SessionId, int]
    usage: TokenUsage
    #: The system that it was imported from, and its id there: ``hermes:20260105``.
    imported_from: str | None


class ConversationViewPage(Record):
    """A page of conversation views, with the cursor of the next one."""

    items: tuple[ConversationView, ...]
    next: str | None


def get_view(t: Tx, conversation: ConversationId, *, viewer: Scope) -> ConversationView:
    """
    Return a conversation that ``viewer`` may see, with its related data.

    :raises NotFound: if ``viewer`` can see no such conversation
    """
    return _build_view(t, conversations.get_visible_conversation(t, conversation, viewer=viewer))


def list_views(
    t: Tx,
    *,
    viewer: Scope,
    title: str = "",
    cursor: str | None = None,
    limit: int = 50,
    adhoc: bool = False,
    wanted: ConversationFilter = ALL_CONVERSATIONS,
) -> ConversationViewPage:
    """Return a page as ``listing.list_conversations`` does, with the related data of each."""
    page = listing.list_conversations(
        t, viewer=viewer, title=title, cursor=cursor, limit=limit, adhoc=adhoc, wanted=wanted
    )
    return ConversationViewPage(
        items=tuple(_build_view(t, each) for each in page.items), next=page.next
    )


def _build_view(t: Tx, found: Conversation) -> ConversationView:
    chain = tuple(sessions.list_sessions(t, found.id))
    return ConversationView(
        conversation=found,
        routes=tuple(conversations.list_routes(t, found.id)),
        sessions=chain,
        counts=listing.count_entries(chain, found.last_seq),
        usage=usage.sum_usage(t, found.id),
        imported_from=settings.get_setting(t, found.id, IMPORTED_FROM),
    )
