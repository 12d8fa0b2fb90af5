"""Previews: the messages that show an answer while it is generated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.clock import from_millis
from clew.core.turn import TurnState
from clew.record import Record
from clew.store.records import RecordQuery

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.ids import TurnId
    from clew.core.route import RouteKey
    from clew.store.contract import Tx


class AnswerPreview(Record):
    """The message on a route that shows a turn's unfinished answer."""

    turn: TurnId
    #: Key that it was sent with.
    key: str
    #: Platform id of the message; ``None`` until its delivery is confirmed.
    message: str | None
    shown_at: datetime


_PREVIEW = RecordQuery(
    AnswerPreview,
    "SELECT turn_id AS turn, key, platform_id AS message, shown_at FROM preview",
    {"shown_at": from_millis},
)


def begin_preview(t: Tx, route: RouteKey, turn: TurnId, key: str) -> bool:
    """
    Record that a preview is about to be sent; ``False`` if it must not be.

    That is the case where the turn has ended, an earlier delivery is unsent, or another
    unfinished turn has its preview there.
    """
    # Locked, so that a turn that ends concurrently sees the preview.
    state = t.fetch_value("SELECT state FROM turn WHERE id = $1 @LOCK", turn)
    if state is None or state == TurnState.DONE.value:
        return False
    in_the_way = t.fetch_one(
        """
        SELECT 1 WHERE EXISTS (
            SELECT 1 FROM delivery WHERE route = $1 AND state NOT IN ('delivered', 'failed')
        ) OR EXISTS (
            SELECT 1 FROM preview p JOIN turn n ON n.id = p.turn_id
            WHERE p.route = $1 AND n.state <> 'done'
        )
        """,
        route,
    )
    if in_the_way is not None:
        return False
    t.execute(
        """
        INSERT INTO preview (route, turn_id, key, platform_id, shown_at)
        VALUES ($1, $2, $3, NULL, $4)
        ON CONFLICT (route) DO UPDATE
        SET turn_id = excluded.turn_id, key = excluded.key, platform_id = NULL,
            shown_at = excluded.shown_at
        """,
        route,
        turn,
        key,
        t.now,
    )
    return True


def set_preview_message(t: Tx, route: RouteKey, turn: TurnId, message: str) -> None:
    """Record the platform's message id of a turn's preview."""
    t.execute(
        "UPDATE preview SET platform_id = $3 WHERE route = $1 AND turn_id = $2",
        route,
        turn,
        message,
    )


def find_preview(t: Tx, route: RouteKey) -> AnswerPreview | None:
    """Return the preview on a route, confirmed or not, or ``None``."""
    return _PREVIEW.fetch_one(t, "WHERE route = $1", route)


def delete_preview(t: Tx, route: RouteKey, turn: TurnId) -> None:
    """Delete a preview that became an answer or was never sent."""
    t.execute("DELETE FROM preview WHERE route = $1 AND turn_id = $2", route, turn)


def list_previewed_routes(t: Tx, turn: TurnId) -> list[RouteKey]:
    """Return the routes with a preview of a turn that no delivery is about to replace."""
    return t.fetch_column(
        """
        SELECT p.route FROM preview p
        WHERE p.turn_id = $1 AND NOT EXISTS (
            SELECT 1 FROM delivery d
            WHERE d.route = p.route AND d.turn_id = $1 AND d.kind IN ('answer', 'text')
              AND d.state NOT IN ('delivered', 'failed')
              AND NOT EXISTS (SELECT 1 FROM delivery_chunk k WHERE k.delivery_id = d.id)
        )
        ORDER BY p.route
        """,
        turn,
    )
