"""A chat that has another id: what belongs to it follows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from clew.core.route import Route
from clew.store.transactions.conversations import move_route
from clew.store.transactions.deliveries import TOPIC

if TYPE_CHECKING:
    from clew.store.contract import Tx


def move_chat(t: Tx, old: Route, new: Route) -> int:
    """
    Let every route into a chat lead from its new id to where it led before; how many there were.

    What waits there, is to be sent there or answered there goes with it. Repeating it changes
    nothing.
    """
    found = [Route.parse(row[0]) for row in t.all("SELECT key FROM route ORDER BY key")]
    here = [
        route
        for route in found
        if (route.platform, route.account, route.chat) == (old.platform, old.account, old.chat)
    ]
    for route in here:
        _move(t, route, replace(route, kind=new.kind, chat=new.chat))
    return len(here)


def _move(t: Tx, route: Route, to: Route) -> None:
    row = t.one("SELECT conversation_id FROM route WHERE key = $1 @LOCK", route.key)
    assert row is not None
    move_route(t, to.key, row[0])
    t.run("DELETE FROM route WHERE key = $1", route.key)
    t.run("UPDATE inbox SET route = $2 WHERE route = $1", route.key, to.key)
    t.run(
        """
        UPDATE delivery SET route = $2
        WHERE route = $1 AND state NOT IN ('delivered', 'failed')
        """,
        route.key,
        to.key,
    )
    t.run("DELETE FROM preview WHERE route = $1", to.key)
    t.run("UPDATE preview SET route = $2 WHERE route = $1", route.key, to.key)
    t.run("UPDATE approval SET route = $2 WHERE route = $1 AND state = 'open'", route.key, to.key)
    t.wake(row[0])
    t.wake(f"{TOPIC}{to.key}")
