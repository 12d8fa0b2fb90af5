"""Deliveries: stored with what they deliver, then moved step by step, chunk by chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.delivery import MOVES, Chunk, Delivery, DeliveryState
from clew.core.moves import check_move
from clew.errors import NotFound
from clew.store.transactions import rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.delivery import NewDelivery
    from clew.core.ids import DeliveryId, OwnerId, TurnId
    from clew.core.lease import Lease
    from clew.core.route import RouteKey
    from clew.store.contract import Tx


def add_deliveries(
    t: Tx,
    lease: Lease,
    turn: TurnId | None,
    deliveries: Sequence[NewDelivery],
    *,
    seq: int | None,
) -> None:
    """Store outbound messages; called inside the transaction that stores what they carry."""
    for delivery in deliveries:
        t.run(
            """
            INSERT INTO delivery (id, conversation_id, turn_id, route, seq, kind, body, state,
                                  due_at,
                                  created_at, updated_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $9) ON CONFLICT (id) DO NOTHING
            """,
            delivery.id,
            lease.conversation_id,
            turn,
            delivery.route,
            seq,
            delivery.kind.value,
            delivery.body,
            DeliveryState.PENDING.value,
            t.now,
        )


def get_delivery(t: Tx, delivery: DeliveryId) -> Delivery:
    """:raises NotFound: if there is no such delivery"""
    row = t.one(f"{rows.DELIVERY} WHERE id = $1", delivery)
    if row is None:
        raise NotFound("delivery", delivery)
    return rows.delivery(row)


def next_delivery(t: Tx, route: RouteKey, *, owner: OwnerId, claim: str) -> Delivery | None:
    """
    Claim the first unsent delivery of a route; ``None`` if it is not due, or somebody living is at
    it.

    Order is kept per route: a later one waits for the first. One that a lost owner left in
    ``sending`` becomes ``unknown`` first, and is returned so. ``claim`` is an id that the caller
    made for this claim: repeating it returns the same delivery.
    """
    row = t.one(
        """
        SELECT id, state, due_at, owner, claim FROM delivery
        WHERE route = $1 AND state NOT IN ('delivered', 'failed') ORDER BY n LIMIT 1 @LOCK
        """,
        route,
    )
    if row is None or row[2] > t.now:
        return None
    delivery, state, _, holder, held = row
    if state == DeliveryState.SENDING.value:
        if (holder, held) == (owner, claim):
            return get_delivery(t, delivery)
        if holder == owner or t.alive(holder):
            return None
        move_delivery(t, delivery, DeliveryState.UNKNOWN)
        return get_delivery(t, delivery)
    if state == DeliveryState.PENDING.value:
        move_delivery(t, delivery, DeliveryState.SENDING, owner=owner, claim=claim)
    return get_delivery(t, delivery)


def move_delivery(
    t: Tx,
    delivery: DeliveryId,
    state: DeliveryState,
    *,
    owner: OwnerId | None = None,
    claim: str | None = None,
    due_at: int | None = None,
    error: str | None = None,
) -> Delivery:
    """
    Go to another state; ``due_at`` (ms) is a platform's wait. Going where it is changes nothing,
    unless another owner is sending it.

    :raises NotFound: if there is no such delivery
    :raises WrongMove: if a delivery cannot go there
    """
    # Locked, so that of two who move it the second sees where the first has moved it.
    row = t.one("SELECT owner FROM delivery WHERE id = $1 @LOCK", delivery)
    found = get_delivery(t, delivery)
    if found.state is state and (state is not DeliveryState.SENDING or row == (owner,)):
        return found
    check_move("delivery", MOVES, found.state, state)
    t.run(
        """
        UPDATE delivery
        SET state = $2, owner = $3, attempts = attempts + $4, due_at = COALESCE($5, due_at),
            error = $6, updated_at = $7, claim = $8
        WHERE id = $1
        """,
        delivery,
        state.value,
        owner,
        int(state is DeliveryState.SENDING),
        due_at,
        error,
        t.now,
        claim,
    )
    _move_open_chunks(t, delivery, state)
    t.wake(found.conversation_id)
    return get_delivery(t, delivery)


def _move_open_chunks(t: Tx, delivery: DeliveryId, state: DeliveryState) -> None:
    # A chunk that was being sent shares the fate of its delivery; those before it stay delivered.
    if state in (DeliveryState.UNKNOWN, DeliveryState.PENDING, DeliveryState.FAILED):
        t.run(
            "UPDATE delivery_chunk SET state = $2 WHERE delivery_id = $1 AND state = 'sending'",
            delivery,
            state.value,
        )


def set_chunks(t: Tx, delivery: DeliveryId, bodies: Sequence[str]) -> list[Chunk]:
    """Fix the parts of a delivery before the first is sent; once fixed they stay as they are."""
    for position, body in enumerate(bodies):
        t.run(
            """
            INSERT INTO delivery_chunk (delivery_id, position, body, state)
            VALUES ($1, $2, $3, 'pending') ON CONFLICT (delivery_id, position) DO NOTHING
            """,
            delivery,
            position,
            body,
        )
    return get_chunks(t, delivery)


def get_chunks(t: Tx, delivery: DeliveryId) -> list[Chunk]:
    """The parts of a delivery, in order."""
    found = t.all(f"{rows.CHUNK} WHERE delivery_id = $1 ORDER BY position", delivery)
    return [rows.chunk(row) for row in found]


def move_chunk(
    t: Tx,
    delivery: DeliveryId,
    position: int,
    state: DeliveryState,
    *,
    platform_id: str | None = None,
    repeated: bool = False,
) -> Chunk:
    """
    Go to another state; ``delivered`` comes with the platform's id. Going where it is changes
    nothing.

    :raises NotFound: if there is no such part
    :raises WrongMove: if a part cannot go there
    """
    row = t.one(f"{rows.CHUNK} WHERE delivery_id = $1 AND position = $2 @LOCK", delivery, position)
    if row is None:
        raise NotFound("part", f"{delivery}/{position}")
    found = rows.chunk(row)
    if (found.state, found.platform_id) == (state, platform_id):
        return found
    check_move("part", MOVES, found.state, state)
    t.run(
        """
        UPDATE delivery_chunk SET state = $3, platform_id = $4,
                                  repeated = CASE WHEN $5 = 1 THEN 1 ELSE repeated END
        WHERE delivery_id = $1 AND position = $2
        """,
        delivery,
        position,
        state.value,
        platform_id,
        int(repeated),
    )
    return get_chunks(t, delivery)[position]


def routes_with_deliveries(t: Tx) -> list[tuple[RouteKey, int]]:
    """Routes with something unsent, each with the time (ms) when its first one is due."""
    found = t.all(
        """
        SELECT d.route, d.due_at FROM delivery d
        WHERE d.state NOT IN ('delivered', 'failed') AND NOT EXISTS (
            SELECT 1 FROM delivery b
            WHERE b.route = d.route AND b.n < d.n AND b.state NOT IN ('delivered', 'failed')
        )
        ORDER BY d.n
        """
    )
    return [(row[0], row[1]) for row in found]
