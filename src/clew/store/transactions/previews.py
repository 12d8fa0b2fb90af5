"""Previews: the message in which an answer is shown while it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.clock import from_millis
from clew.core.turn import TurnState

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.ids import TurnId
    from clew.core.route import RouteKey
    from clew.store.contract import Tx


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview:
    turn: TurnId
    #: What it was sent with.
    key: str
    #: The platform's id of the message; ``None`` while it is not known whether it arrived.
    message: str | None
    shown_at: datetime


def begin_preview(t: Tx, route: RouteKey, turn: TurnId, key: str) -> bool:
    """
    Remember that a message is about to be sent to show an answer; ``False`` if it may not be.

    That is so where the turn has ended, where something before it was not delivered yet, or where
    the answer of another turn is still shown.
    """
    # Locked, so that a turn which ends now sees the preview.
    row = t.one("SELECT state FROM turn WHERE id = $1 @LOCK", turn)
    if row is None or row[0] == TurnState.DONE.value:
        return False
    in_the_way = t.one(
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
    t.run(
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


def keep_preview(t: Tx, route: RouteKey, turn: TurnId, message: str) -> None:
    """The platform has the message that shows a turn's answer."""
    t.run(
        "UPDATE preview SET platform_id = $3 WHERE route = $1 AND turn_id = $2",
        route,
        turn,
        message,
    )


def preview_of(t: Tx, route: RouteKey) -> Preview | None:
    """The message that stands there now, or may, if any."""
    row = t.one("SELECT turn_id, key, platform_id, shown_at FROM preview WHERE route = $1", route)
    if row is None:
        return None
    return Preview(turn=row[0], key=row[1], message=row[2], shown_at=from_millis(row[3]))


def drop_preview(t: Tx, route: RouteKey, turn: TurnId) -> None:
    """The message has become an answer, or was never sent."""
    t.run("DELETE FROM preview WHERE route = $1 AND turn_id = $2", route, turn)


def previewed(t: Tx, turn: TurnId) -> list[RouteKey]:
    """The routes on which a turn's answer is shown, and nothing is on its way to take its place."""
    found = t.all(
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
    return [row[0] for row in found]
