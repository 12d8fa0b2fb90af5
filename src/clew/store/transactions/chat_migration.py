"""Migration of a chat to another platform id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.route import Route
from clew.core.scope import scope_of
from clew.record import replace
from clew.store.feature_migrations import list_feature_routes, move_feature_rows
from clew.store.transactions.conversations import move_route
from clew.store.transactions.deliveries import DELIVERY_TOPIC

if TYPE_CHECKING:
    from clew.core.scope import Scope
    from clew.store.contract import Tx


def migrate_chat(t: Tx, old: Route, new: Route) -> int:
    """
    Move every route of a chat to its new id, and return the number of routes.

    Queued inputs, unsent deliveries, open approvals and the rows of features move with it, and
    so do the conversations of its scope. Repeating it changes nothing.
    """
    keys = {*t.fetch_column("SELECT key FROM route"), *list_feature_routes(t)}
    found = [Route.parse(key) for key in sorted(keys)]
    here = [
        route
        for route in found
        if (route.platform, route.account, route.chat) == (old.platform, old.account, old.chat)
    ]
    for route in here:
        _migrate_route(t, route, replace(route, kind=new.kind, chat=new.chat))
    _migrate_scope(t, scope_of(old), scope_of(new))
    return len(here)


def _migrate_scope(t: Tx, scope: Scope, to: Scope) -> None:
    if scope == to:
        return
    # A title is unique in its scope: what was said in the new chat meanwhile keeps its own.
    t.execute(
        """
        UPDATE conversation SET title = NULL, titled_by = NULL
        WHERE scope = $1 AND title IN (SELECT title FROM conversation WHERE scope = $2)
        """,
        scope,
        to,
    )
    t.execute("UPDATE conversation SET scope = $2 WHERE scope = $1", scope, to)
    t.execute("UPDATE approval_grant SET scope = $2 WHERE scope = $1", scope, to)
    move_feature_rows(t, "scope", scope, to)


def _migrate_route(t: Tx, route: Route, to: Route) -> None:
    move_feature_rows(t, "route", route.key, to.key)
    conversation = t.fetch_value(
        "SELECT conversation_id FROM route WHERE key = $1 @LOCK", route.key
    )
    if conversation is not None:
        move_route(t, to.key, conversation)
        t.execute("DELETE FROM route WHERE key = $1", route.key)
        t.notify(conversation)
    t.execute("UPDATE inbox SET route = $2 WHERE route = $1", route.key, to.key)
    t.execute(
        """
        UPDATE delivery SET route = $2
        WHERE route = $1 AND state NOT IN ('delivered', 'failed')
        """,
        route.key,
        to.key,
    )
    t.execute("DELETE FROM preview WHERE route = $1", to.key)
    t.execute("UPDATE preview SET route = $2 WHERE route = $1", route.key, to.key)
    t.execute(
        "UPDATE approval SET route = $2 WHERE route = $1 AND state = 'open'", route.key, to.key
    )
    t.notify(f"{DELIVERY_TOPIC}{to.key}")
