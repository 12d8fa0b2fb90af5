"""Clients that are attached to a conversation: whether closing one closes the conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.route import LOCAL, Route
from clew.store.transactions.conversations import routes_of

if TYPE_CHECKING:
    from clew.core.ids import ClientId, ConversationId, OwnerId
    from clew.store.contract import Tx


def attach(
    t: Tx, client: ClientId, conversation: ConversationId, *, owner: OwnerId, front: str
) -> None:
    """Attach a client; attaching it elsewhere moves it."""
    t.run(
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


def detach(t: Tx, client: ClientId) -> ConversationId | None:
    """Detach a client; the conversation that it was attached to."""
    row = t.one("DELETE FROM client WHERE id = $1 RETURNING conversation_id", client)
    return None if row is None else row[0]


def wanted(t: Tx, conversation: ConversationId) -> bool:
    """Whether a client is attached, or people write to the conversation from a channel."""
    routes = [Route.parse(key) for key in routes_of(t, conversation)]
    return any(route.platform != LOCAL for route in routes) or attached(t, conversation) > 0


def forget_dead_clients(t: Tx) -> int:
    """Forget the clients of processes that are gone; how many."""
    found = t.all("SELECT DISTINCT owner FROM client")
    dead = [row[0] for row in found if not t.alive(row[0])]
    return sum(t.run("DELETE FROM client WHERE owner = $1", owner) for owner in dead)


def attached(t: Tx, conversation: ConversationId) -> int:
    """How many clients of living processes are attached."""
    found = t.all("SELECT DISTINCT owner FROM client WHERE conversation_id = $1", conversation)
    alive = [row[0] for row in found if t.alive(row[0])]
    count = 0
    for owner in alive:
        row = t.one(
            "SELECT count(*) FROM client WHERE conversation_id = $1 AND owner = $2",
            conversation,
            owner,
        )
        assert row is not None
        count += row[0]
    return count
