"""Conversations and routes: opening, finding, naming, moving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core import base as bases
from clew.core import session as reasons
from clew.core.conversation import Conversation, TitledBy
from clew.core.ids import ConversationId, SessionId
from clew.core.route import Route, RouteKey, local_route
from clew.core.scope import can_see, scope_of
from clew.errors import ConstraintViolated, NotFound, TitleTaken, UsageError
from clew.store.transactions import rows
from clew.store.transactions.sessions import insert_session

if TYPE_CHECKING:
    from clew.core.base import Base
    from clew.core.ids import SessionIdFactory
    from clew.core.scope import Scope
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
    instructions: str | None = None,
) -> SessionId:
    """
    Store a conversation with its first session, and return that session's id.

    Repeating it with the same id changes nothing and returns the first session again.
    """
    inserted = t.run(
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
        return _first_session(t, conversation)
    t.run("INSERT INTO lease (conversation_id, updated_at) VALUES ($1, $2)", conversation, t.now)
    session = insert_session(
        t,
        conversation,
        predecessor=None,
        opened_by=opened_by,
        opened_seq=0,
        base=base,
        operation=conversation,
        session_ids=session_ids,
        instructions=instructions,
    )
    t.run("INSERT INTO head (conversation_id, session_id) VALUES ($1, $2)", conversation, session)
    t.wake(conversation)
    return session


def _first_session(t: Tx, conversation: ConversationId) -> SessionId:
    row = t.one("SELECT id FROM session WHERE operation = $1", conversation)
    if row is None:
        raise NotFound("conversation", conversation)
    return SessionId(row[0])


def route_target(t: Tx, route: RouteKey) -> ConversationId | None:
    """The conversation that a route resolves to, kept from moving until the commit."""
    row = t.one("SELECT conversation_id FROM route WHERE key = $1 @SHARE", route)
    return None if row is None else ConversationId(row[0])


def claim_route(t: Tx, route: RouteKey, conversation: ConversationId) -> bool:
    """Make an unknown route resolve to a conversation; ``False`` if it resolves to one already."""
    return bool(
        t.run(
            """
            INSERT INTO route (key, conversation_id, moved_at) VALUES ($1, $2, $3)
            ON CONFLICT (key) DO NOTHING
            """,
            route,
            conversation,
            t.now,
        )
    )


def open_route(
    t: Tx, route: Route, *, new_conversation: ConversationId, session_ids: SessionIdFactory
) -> ConversationId:
    """
    The conversation that a route resolves to; ``new_conversation`` is opened where there is none.

    Repeating it with the same ``new_conversation`` changes nothing.
    """
    if claim_route(t, route.key, new_conversation):
        open_conversation(t, new_conversation, scope=scope_of(route), session_ids=session_ids)
        return new_conversation
    found = route_target(t, route.key)
    if found is None:
        # The route was deleted between the two statements: it is free again.
        return open_route(t, route, new_conversation=new_conversation, session_ids=session_ids)
    return found


def move_route(t: Tx, route: RouteKey, conversation: ConversationId) -> ConversationId | None:
    """
    Make a route resolve to a conversation; the one that it resolved to before.

    Waits for every ``accept`` that has read the route, so that no message lands in a conversation
    that was just left; a deletion of the conversation comes after it, or was before.

    :raises NotFound: if there is no such conversation
    """
    if t.one("SELECT 1 FROM lease WHERE conversation_id = $1 @SHARE", conversation) is None:
        raise NotFound("conversation", conversation)
    if claim_route(t, route, conversation):
        return None
    row = t.one("SELECT conversation_id FROM route WHERE key = $1 @LOCK", route)
    before = None if row is None else ConversationId(row[0])
    if before != conversation:
        t.run(
            "UPDATE route SET conversation_id = $2, moved_at = $3 WHERE key = $1",
            route,
            conversation,
            t.now,
        )
    return before


def choose_route(t: Tx, route: RouteKey, conversation: ConversationId) -> None:
    """As ``move_route``, for a person who goes on there: also where the route led there before."""
    move_route(t, route, conversation)
    t.run("UPDATE route SET moved_at = $2 WHERE key = $1", route, t.now)


def routes_of(t: Tx, conversation: ConversationId) -> list[RouteKey]:
    """The routes that resolve to a conversation, in the order of their keys."""
    found = t.all("SELECT key FROM route WHERE conversation_id = $1 ORDER BY key", conversation)
    return [RouteKey(row[0]) for row in found]


_BY_CONVERSATION = "SELECT conversation_id FROM head WHERE conversation_id = $1"
_BY_SESSION = """
    SELECT h.conversation_id FROM session s JOIN head h ON h.conversation_id = s.conversation_id
    WHERE s.id = $1
"""
_BY_ROUTE = "SELECT conversation_id FROM route WHERE key = $1"


def resolve(t: Tx, name: str) -> ConversationId:
    """
    What a person or program means by a name: a conversation id, any of its session ids, a route or
    a NAME.

    :raises NotFound: if it means nothing
    """
    row = (
        t.one(_BY_CONVERSATION, name)
        or t.one(_BY_SESSION, name)
        or t.one(_BY_ROUTE, _route_key(name))
    )
    if row is None:
        raise NotFound("conversation", name)
    return ConversationId(row[0])


def _route_key(name: str) -> str:
    try:
        return local_route(name).key
    except UsageError:  # an id or a key, or nothing that was ever a name
        return name


def get_conversation(t: Tx, conversation: ConversationId) -> Conversation:
    """:raises NotFound: if there is no such conversation"""
    row = t.one(f"{rows.CONVERSATION} WHERE c.id = $1", conversation)
    if row is None:
        raise NotFound("conversation", conversation)
    return rows.conversation(row)


def visible(
    t: Tx, conversation: ConversationId, *, viewer: Scope, name: str | None = None
) -> Conversation:
    """:raises NotFound: with the name it was asked for by, if ``viewer`` may not see it, either"""
    found = get_conversation(t, conversation)
    if not can_see(viewer, found.scope):
        # To somebody else it does not exist.
        raise NotFound("conversation", name or conversation)
    return found


def rename(
    t: Tx, conversation: ConversationId, title: str | None, *, titled_by: TitledBy = TitledBy.PERSON
) -> bool:
    """
    Give a title, or take it away; ``False`` if an automatic title met one that a person gave.

    :raises NotFound: if there is no such conversation
    :raises TitleTaken: if another conversation of the same scope has it
    """
    found = get_conversation(t, conversation)
    if titled_by is TitledBy.MODEL and found.titled_by is TitledBy.PERSON:
        return False
    if title is not None and is_title_taken(t, found.scope, title, by_other_than=found.id):
        raise TitleTaken(title)
    try:
        # The rule once more in the statement: a person's title may have come in since we looked.
        given = t.run(
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
            # Given to another one since we looked.
            raise TitleTaken(title) from error
        raise
    if given:
        t.wake(conversation)
    elif titled_by is TitledBy.PERSON:
        raise NotFound("conversation", conversation)  # deleted since we looked
    return bool(given)


def is_title_taken(t: Tx, scope: Scope, title: str, *, by_other_than: str = "") -> bool:
    """Whether a conversation of the scope has this title."""
    row = t.one(
        "SELECT id FROM conversation WHERE scope = $1 AND title = $2 AND id <> $3",
        scope,
        title,
        by_other_than,
    )
    return row is not None
