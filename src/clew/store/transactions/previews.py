"""Previews: the message in which an answer is shown while it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.core.ids import TurnId
    from clew.core.route import RouteKey
    from clew.store.contract import Tx


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview:
    turn: TurnId
    #: The platform's id of the message.
    message: str


def keep_preview(t: Tx, route: RouteKey, preview: Preview) -> None:
    """Remember the message in which a route's answer is shown, in place of one before."""
    t.run(
        """
        INSERT INTO preview (route, turn_id, platform_id, shown_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (route) DO UPDATE
        SET turn_id = excluded.turn_id, platform_id = excluded.platform_id,
            shown_at = excluded.shown_at
        """,
        route,
        preview.turn,
        preview.message,
        t.now,
    )


def preview_of(t: Tx, route: RouteKey) -> Preview | None:
    """The message that stands there now, if any."""
    row = t.one("SELECT turn_id, platform_id FROM preview WHERE route = $1", route)
    return None if row is None else Preview(turn=row[0], message=row[1])


def drop_preview(t: Tx, route: RouteKey, message: str) -> None:
    """The message has become an answer, or is to stay as it is."""
    t.run("DELETE FROM preview WHERE route = $1 AND platform_id = $2", route, message)


def previews(t: Tx) -> dict[RouteKey, Preview]:
    """All of them."""
    found = t.all("SELECT route, turn_id, platform_id FROM preview ORDER BY route")
    return {row[0]: Preview(turn=row[1], message=row[2]) for row in found}
