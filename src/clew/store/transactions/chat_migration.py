"""Migration of a chat to another platform id."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from clew.core.route import Route
from clew.store.transactions.conversations import move_route
from clew.store.transactions.deliveries import DELIVERY_TOPIC

if TYPE_CHECKING:
    from clew.store.contract import Tx


def migrate_chat(t: Tx, old: Route, new: Route) -> int:
    """
    Move every route of a chat to its new id, and return the number of routes.

    Queued inputs, unsent deliveries and open approvals move with it. Repeating it changes
    nothing.
    """
    found = [Route.parse(key) for key in t.fetch_column("SELECT key FROM route ORDER BY key")]
    here = [
        route
        for route in found
        if (route.platform, route.account, route.chat) == (old.platform, old.account, old.chat)
    ]
    for route in here:
        _migrate_route(t, route, replace(route, kind=new.kind, chat=new.chat))
    return len(here)


def _migrate_route(t: Tx, route: Route, to: Route) -> None:
    conversation = t.fetch_value(
        "SELECT conversation_id FROM route WHERE key = $1 @LOCK", route.key
    )
    move_route(t, to.key, conversation)
    t.execute("DELETE FROM route WHERE key = $1", route.key)
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
    t.notify(conversation)
    t.notify(f"{DELIVERY_TOPIC}{to.key}")
