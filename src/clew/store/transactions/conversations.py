"""Conversations and routes: opening, finding, naming, moving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core import session as reasons
from clew.core import session_base as bases
from clew.core.conversation import Conversation, TitledBy
from clew.core.route import Route, RouteKey, local_route
from clew.core.scope import can_see, scope_of
from clew.errors import ConstraintViolated, NotFound, TitleTaken, UsageError
from clew.store.transactions import rows
from clew.store.transactions.sessions import insert_session
from clew.store.transactions.settings import set_agent_of_route

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, SessionId, SessionIdFactory
    from clew.core.scope import Scope
    from clew.core.session_base import Base
    from clew.store.contract import Tx


def open_conversation(  # noqa: PLR0913  (each is a column of its own)
    t: Tx,
    conversation: ConversationId,
    *,
    scope: Scope,
    session_ids: SessionIdFactory,
    base: Base = bases.EMPTY,
    opened_by: str = reasons.START,
    origin: str | None = None,
    origin_seq: int | None = None,
    adhoc: bool = False,
) -> SessionId:
    """
    Store a conversation with its first session, and return that session's id.

    Repeating it with the same id changes nothing and returns the first session again.
    """
    inserted = t.execute(
        """
        INSERT INTO conversation (id, scope, origin, origin_seq, adhoc, created_at)
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING
        """,
        conversation,
        scope,
        origin,
        origin_seq,
        int(adhoc),
        t.now,
    )
    if not inserted:
        return _first_session_id(t, conversation)
    t.execute(
        "INSERT INTO lease (conversation_id, updated_at) VALUES ($1, $2)", conversation, t.now
    )
    session = insert_session(
        t,
        conversation,
        predecessor=None,
        opened_by=opened_by,
        opened_seq=0,
        base=base,
        operation=conversation,
        session_ids=session_ids,
    )
    t.execute(
        "INSERT INTO head (conversation_id, session_id) VALUES ($1, $2)", conversation, session
    )
    t.notify(conversation)
    return session


def _first_session_id(t: Tx, conversation: ConversationId) -> SessionId:
    found = t.fetch_value("SELECT id FROM session WHERE operation = $1", conversation)
    if found is None:
        raise NotFound("conversation", conversation)
    return found


def resolve_route(t: Tx, route: RouteKey) -> ConversationId | None:
    """Return the conversation of a route, which cannot move until the commit."""
    return t.fetch_value("SELECT conversation_id FROM route WHERE key = $1 @SHARE", route)


def claim_route(t: Tx, route: RouteKey, conversation: ConversationId) -> bool:
    """Make an unknown route resolve to a conversation; ``False`` if it already resolves."""
    return bool(
        t.execute(
            """
            INSERT INTO route (key, conversation_id, moved_at) VALUES ($1, $2, $3)
            ON CONFLICT (key) DO NOTHING
            """,
            route,
            conversation,
            t.now,
        )
    )


def open_for_route(
    t: Tx, route: Route, conversation: ConversationId, session_ids: SessionIdFactory
) -> SessionId:
    """Open a conversation that has the scope and the agent of a route."""
    set_agent_of_route(t, conversation, route.key)
    return open_conversation(t, conversation, scope=scope_of(route), session_ids=session_ids)


def open_route(
    t: Tx, route: Route, *, new_conversation: ConversationId, session_ids: SessionIdFactory
) -> ConversationId:
    """
    Return the conversation of a route, opening ``new_conversation`` if there is none.

    Repeating it with the same ``new_conversation`` changes nothing.
    """
    if claim_route(t, route.key, new_conversation):
        open_for_route(t, route, new_conversation, session_ids)
        return new_conversation
    found = resolve_route(t, route.key)
    if found is None:
        # The route was deleted between the two statements, so it is free again.
        return open_route(t, route, new_conversation=new_conversation, session_ids=session_ids)
    return found


def move_route(t: Tx, route: RouteKey, conversation: ConversationId) -> ConversationId | None:
    """
    Make a route resolve to a conversation, and return its previous conversation.

    Waits for every ``accept_input`` that has read the route, so that no message lands in a
    conversation that was just left. A deletion of the conversation runs either before or
    after.

    :raises NotFound: if there is no such conversation
    """
    if t.fetch_one("SELECT 1 FROM lease WHERE conversation_id = $1 @SHARE", conversation) is None:
        raise NotFound("conversation", conversation)
    if claim_route(t, route, conversation):
        return None
    before = t.fetch_value("SELECT conversation_id FROM route WHERE key = $1 @LOCK", route)
    if before != conversation:
        t.execute(
            "UPDATE route SET conversation_id = $2, moved_at = $3 WHERE key = $1",
            route,
            conversation,
            t.now,
        )
    return before


def switch_route(t: Tx, route: RouteKey, conversation: ConversationId) -> None:
    """Move a route by explicit choice: like ``move_route``, but always renew ``moved_at``."""
    move_route(t, route, conversation)
    t.execute("UPDATE route SET moved_at = $2 WHERE key = $1", route, t.now)


def list_routes(t: Tx, conversation: ConversationId) -> list[RouteKey]:
    """Return the routes that resolve to a conversation, in key order."""
    return t.fetch_column(
        "SELECT key FROM route WHERE conversation_id = $1 ORDER BY key", conversation
    )


_BY_CONVERSATION = "SELECT conversation_id FROM head WHERE conversation_id = $1"
_BY_SESSION = """
    SELECT h.conversation_id FROM session s JOIN head h ON h.conversation_id = s.conversation_id
    WHERE s.id = $1
"""
_BY_ROUTE = "SELECT conversation_id FROM route WHERE key = $1"


def resolve_conversation(t: Tx, name: str) -> ConversationId:
    """
    Return the conversation that an id, a session id, a route or a NAME refers to.

    :raises NotFound: if nothing matches
    """
    found = (
        t.fetch_value(_BY_CONVERSATION, name)
        or t.fetch_value(_BY_SESSION, name)
        or t.fetch_value(_BY_ROUTE, _to_route_key(name))
    )
    if found is None:
        raise NotFound("conversation", name)
    return found


def _to_route_key(name: str) -> str:
    try:
        return local_route(name).key
    except UsageError:  # an id or a key, or an invalid name
        return name


def get_conversation(t: Tx, conversation: ConversationId) -> Conversation:
    """
    Return a conversation.

    :raises NotFound: if there is no such conversation
    """
    found = rows.CONVERSATION.fetch_one(t, "WHERE c.id = $1", conversation)
    if found is None:
        raise NotFound("conversation", conversation)
    return found


def get_scope(t: Tx, conversation: ConversationId) -> Scope:
    """
    Return whose conversation it is.

    :raises NotFound: if there is no such conversation
    """
    found = t.fetch_value("SELECT scope FROM conversation WHERE id = $1", conversation)
    if found is None:
        raise NotFound("conversation", conversation)
    return found


def get_visible_conversation(
    t: Tx, conversation: ConversationId, *, viewer: Scope, name: str | None = None
) -> Conversation:
    """
    Return a conversation that ``viewer`` may see.

    :raises NotFound: with the requested ``name``, also if ``viewer`` may not see it
    """
    found = get_conversation(t, conversation)
    if not can_see(viewer, found.scope):
        # Outside its scope it does not exist.
        raise NotFound("conversation", name or conversation)
    return found


def rename_conversation(
    t: Tx, conversation: ConversationId, title: str | None, *, titled_by: TitledBy = TitledBy.PERSON
) -> bool:
    """
    Set or clear a title; ``False`` if an automatic title would replace a person's.

    :raises NotFound: if there is no such conversation
    :raises TitleTaken: if another conversation of the same scope has it
    """
    found = get_conversation(t, conversation)
    if titled_by is TitledBy.MODEL and found.titled_by is TitledBy.PERSON:
        return False
    if title is not None and is_title_taken(t, found.scope, title, by_other_than=found.id):
        raise TitleTaken(title)
    try:
        # The statement repeats the check: a person may have set a title since the read.
        given = t.execute(
            """
            UPDATE conversation SET title = $2, titled_by = $3
            WHERE id = $1 AND deleting_at IS NULL
              AND ($4 = 'person' OR COALESCE(titled_by, '') <> 'person')
            """,
            conversation,
            title,
            None if title is None else titled_by.value,
            titled_by.value,
        )
    except ConstraintViolated as error:
        if title is not None and error.constraint == "conversation_title":
            # Another conversation took it since the read.
            raise TitleTaken(title) from error
        raise
    if given:
        t.notify(conversation)
    elif titled_by is TitledBy.PERSON:
        raise NotFound("conversation", conversation)  # deleted since the read
    return bool(given)


def is_title_taken(t: Tx, scope: Scope, title: str, *, by_other_than: str = "") -> bool:
    """Return whether another conversation of the scope has this title."""
    return t.exists(
        "SELECT id FROM conversation WHERE scope = $1 AND title = $2 AND id <> $3",
        scope,
        title,
        by_other_than,
    )
