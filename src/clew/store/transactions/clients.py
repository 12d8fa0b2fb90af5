"""Clients that are attached to a conversation: whether closing one closes the conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.core.ids import ClientId, ConversationId, OwnerId
    from clew.store.contract import Tx


def attach(
    t: Tx, client: ClientId, conversation: ConversationId, *, owner: OwnerId, front: str
) -> None:
    """Attach a client; attaching it elsewhere moves it."""
    t.run(
        """
        INSERT INTO client (id, conversation_id, owner, front, attached_at) VALUES ($1, $2, $3, $4,
                                                                                    $5)
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
