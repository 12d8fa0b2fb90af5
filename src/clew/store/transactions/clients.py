"""Clients attached to a conversation; closing the last one closes the conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.route import LOCAL, Route
from clew.store.transactions.conversations import list_routes

if TYPE_CHECKING:
    from clew.core.ids import ClientId, ConversationId, OwnerId
    from clew.store.contract import Tx


def attach_client(
    t: Tx, client: ClientId, conversation: ConversationId, *, owner: OwnerId, front: str
) -> None:
    """Attach a client, moving it if it is attached elsewhere."""
    t.execute(
        """
        INSERT INTO client (id, conversation_id, owner, front, attached_at)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (id) DO UPDATE SET conversation_id = excluded.conversation_id
        """,
        client,
        conversation,
        owner,
        front,
        t.now,
    )


def detach_client(t: Tx, client: ClientId) -> ConversationId | None:
    """Detach a client, and return the conversation it was attached to."""
    return t.fetch_value("DELETE FROM client WHERE id = $1 RETURNING conversation_id", client)


def is_in_use(t: Tx, conversation: ConversationId) -> bool:
    """Return whether a client is attached or a channel route leads to the conversation."""
    routes = [Route.parse(key) for key in list_routes(t, conversation)]
    return (
        any(route.platform != LOCAL for route in routes)
        or count_attached_clients(t, conversation) > 0
    )


def delete_dead_clients(t: Tx) -> int:
    """Delete the clients of dead processes, and return their count."""
    found = t.fetch_column("SELECT DISTINCT owner FROM client")
    dead = [owner for owner in found if not t.is_alive(owner)]
    return sum(t.execute("DELETE FROM client WHERE owner = $1", owner) for owner in dead)


def count_attached_clients(t: Tx, conversation: ConversationId) -> int:
    """Return the number of attached clients of living processes."""
    found = t.fetch_map(
        "SELECT owner, count(*) FROM client WHERE conversation_id = $1 GROUP BY owner", conversation
    )
    return sum(count for owner, count in found.items() if t.is_alive(owner))
