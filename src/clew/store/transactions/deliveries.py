"""Deliveries: stored with what they deliver, then moved step by step, chunk by chunk."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from clew.core import chat
from clew.core.delivery import (
    TRANSITIONS,
    UNFINISHED_ANSWER,
    Chunk,
    Delivery,
    DeliveryKind,
    DeliveryState,
    NewDelivery,
)
from clew.core.ids import DeliveryId
from clew.core.inbox import CLOCK_SKEW
from clew.core.moves import check_transition
from clew.core.route import LOCAL, Route
from clew.core.text import is_blank
from clew.errors import InvalidTransition, NotFound
from clew.store.transactions import rows
from clew.store.transactions.previews import drop_preview, previewed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.chat import OutboundMessage
    from clew.core.delivery import OutboundText
    from clew.core.ids import ConversationId, OwnerId, TurnId
    from clew.core.lease import Lease
    from clew.core.route import RouteKey
    from clew.store.contract import Tx


#: Told to listeners, with the route behind it, when there is something to deliver.
TOPIC = "deliver:"
_SKEW = CLOCK_SKEW // timedelta(milliseconds=1)


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
        add_delivery(t, lease.conversation_id, delivery, turn=turn, seq=seq)


def add_delivery(
    t: Tx,
    conversation: ConversationId,
    delivery: NewDelivery,
    *,
    turn: TurnId | None = None,
    seq: int | None = None,
) -> None:
    """Store an outbound message; repeating it changes nothing."""
    t.run(
        """
        INSERT INTO delivery (id, conversation_id, turn_id, route, seq, kind, body, state,
                              due_at,
                              created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $9) ON CONFLICT (id) DO NOTHING
        """,
        delivery.id,
        conversation,
        turn,
        delivery.route,
        seq,
        delivery.kind.value,
        delivery.body,
        DeliveryState.PENDING.value,
        t.now,
    )
    t.wake(f"{TOPIC}{delivery.route}")


def deliver(
    t: Tx, conversation: ConversationId, turn: TurnId, said: OutboundText, *, seq: int | None = None
) -> None:
    """Have what a turn says delivered on each channel from which an input of it came."""
    if is_blank(said.text):
        return
    for number, (route, message) in enumerate(_askers(t, turn)):
        direct = Route.parse(route).kind == chat.DM
        new = NewDelivery(
            id=said.id if number == 0 else DeliveryId(f"{said.id}.{number}"),
            route=route,
            kind=said.kind,
            body=chat.dump_message(
                chat.OutboundMessage(
                    text=said.text, markup=said.markup, reply_to=None if direct else message
                )
            ),
        )
        add_delivery(t, conversation, new, turn=turn, seq=seq)


def end_previews(t: Tx, conversation: ConversationId, turn: TurnId) -> None:
    """Have what was shown of an answer that does not come say so; repeating it changes nothing."""
    for number, route in enumerate(previewed(t, turn)):
        new = NewDelivery(
            id=DeliveryId(f"{turn}.unfinished.{number}"),
            route=route,
            kind=DeliveryKind.NOTICE,
            body=chat.dump_message(
                chat.OutboundMessage(text=UNFINISHED_ANSWER, markup=False, instead_of=turn)
            ),
        )
        add_delivery(t, conversation, new)


def _askers(t: Tx, turn: TurnId) -> list[tuple[RouteKey, str | None]]:
    """The channel routes of a turn's inputs, each with the platform's id of the last message."""
    found = t.all(
        """
        SELECT route, payload FROM inbox WHERE turn_id = $1 AND route IS NOT NULL ORDER BY n
        """,
        turn,
    )
    last = {row[0]: row[1] for row in found if on_channel(row[0])}
    return [(route, json.loads(payload).get("message")) for route, payload in last.items()]


def on_channel(route: RouteKey) -> bool:
    """Whether a route is a chat, which gets deliveries; others read the log."""
    return route.split(":", 3)[2] != LOCAL


def tell(
    t: Tx,
    conversation: ConversationId,
    route: RouteKey | None,
    message: OutboundMessage,
    *,
    id: DeliveryId,
    kind: DeliveryKind,
    turn: TurnId | None = None,
) -> None:
    """Have one message delivered on one route, if it is a chat; repeating it changes nothing."""
    if route is not None and on_channel(route):
        new = NewDelivery(id=id, route=route, kind=kind, body=chat.dump_message(message))
        add_delivery(t, conversation, new, turn=turn)


def get_delivery(t: Tx, delivery: DeliveryId) -> Delivery:
    """:raises NotFound: if there is no such delivery"""
    row = t.one(f"{rows.DELIVERY} WHERE id = $1", delivery)
    if row is None:
        raise NotFound("delivery", delivery)
    return rows.delivery(row)


def next_delivery(
    t: Tx, route: RouteKey, *, owner: OwnerId, claim: str, left: bool = False
) -> Delivery | None:
    """
    Claim the first unsent delivery of a route; ``None`` if it is not due, or somebody living is at
    it.

    Order is kept per route: a later one waits for the first. One that a lost owner left in
    ``sending`` becomes ``unknown`` first, and is returned so; with ``left``, for an owner that is
    at no other one of this route, also what it left itself. ``claim`` is an id that the caller
    made for this claim: repeating it returns the same delivery.
    """
    row = t.one(
        """
        SELECT id, state, due_at, owner, claim, updated_at FROM delivery
        WHERE route = $1 AND state NOT IN ('delivered', 'failed') ORDER BY n LIMIT 1 @LOCK
        """,
        route,
    )
    if row is None:
        return None
    delivery, state, due_at, holder, held, updated_at = row
    # Where the clock has gone back since, the time would be a wait that nobody asked for.
    if t.now < due_at and updated_at <= t.now + _SKEW:
        return None
    if state == DeliveryState.SENDING.value:
        if (holder, held) == (owner, claim):
            return get_delivery(t, delivery)
        if (holder == owner and not left) or (holder != owner and t.alive(holder)):
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
    check_transition("delivery", TRANSITIONS, found.state, state)
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
    """
    Fix the parts of a delivery before the first is sent; once fixed they stay as they are.

    Those of one that is unknown without having been tried may have arrived: a backup was restored,
    and what was sent after it is not known.
    """
    row = t.one("SELECT state, attempts FROM delivery WHERE id = $1", delivery)
    doubted = row == (DeliveryState.UNKNOWN.value, 0)
    state = DeliveryState.UNKNOWN if doubted else DeliveryState.PENDING
    for position, body in enumerate(bodies):
        t.run(
            """
            INSERT INTO delivery_chunk (delivery_id, position, body, state)
            VALUES ($1, $2, $3, $4) ON CONFLICT (delivery_id, position) DO NOTHING
            """,
            delivery,
            position,
            body,
            state.value,
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
    check_transition("part", TRANSITIONS, found.state, state)
    t.run(
        """
        UPDATE delivery_chunk SET state = $3, platform_id = $4,
                                  repeated = repeated + $5
        WHERE delivery_id = $1 AND position = $2
        """,
        delivery,
        position,
        state.value,
        platform_id,
        int(repeated),
    )
    return get_chunks(t, delivery)[position]


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed:
    """A delivery that is ours to send, with its parts if they are fixed."""

    delivery: Delivery
    chunks: tuple[Chunk, ...]


def claim_first(t: Tx, routes: Sequence[RouteKey], *, owner: OwnerId, claim: str) -> Claimed | None:
    """
    Claim the first unsent delivery of several routes, which are one chat.

    ``None`` if there is none, or the first one cannot be claimed: later ones wait for it. The
    caller is at no other one: what this owner left in ``sending`` is ``unknown``.
    """
    first: tuple[int, RouteKey] | None = None
    for route in routes:
        row = t.one(
            """
            SELECT n FROM delivery
            WHERE route = $1 AND state NOT IN ('delivered', 'failed') ORDER BY n LIMIT 1
            """,
            route,
        )
        if row is not None and (first is None or row[0] < first[0]):
            first = row[0], route
    if first is None:
        return None
    found = next_delivery(t, first[1], owner=owner, claim=claim, left=True)
    if found is None:
        return None
    return Claimed(delivery=found, chunks=tuple(get_chunks(t, found.id)))


def fix(
    t: Tx, delivery: DeliveryId, bodies: Sequence[str], *, preview: TurnId | None
) -> list[Chunk]:
    """As ``set_chunks``; the first part may take the place in which a turn's answer is shown."""
    if preview is not None:
        drop_preview(t, get_delivery(t, delivery).route, preview)
    return set_chunks(t, delivery, bodies)


def begin_chunk(
    t: Tx, delivery: DeliveryId, position: int, *, owner: OwnerId, repeated: bool = False
) -> Chunk:
    """Mark a part as being sent, before it is; ``repeated``: it may have been sent before."""
    move_delivery(t, delivery, DeliveryState.SENDING, owner=owner)
    return move_chunk(t, delivery, position, DeliveryState.SENDING, repeated=repeated)


def end_chunk(
    t: Tx, delivery: DeliveryId, position: int, platform_id: str, *, owner: OwnerId
) -> DeliveryState:
    """The platform has a part; with the last one the delivery is done. Its state then."""
    if get_delivery(t, delivery).state is DeliveryState.FAILED:
        # It was dropped while it was on its way.
        return DeliveryState.FAILED
    move_chunk(t, delivery, position, DeliveryState.DELIVERED, platform_id=platform_id)
    return _close(t, delivery, owner)


def _close(t: Tx, delivery: DeliveryId, owner: OwnerId) -> DeliveryState:
    open_ = t.one(
        "SELECT 1 FROM delivery_chunk WHERE delivery_id = $1 AND state <> 'delivered' LIMIT 1",
        delivery,
    )
    if open_ is not None:
        return get_delivery(t, delivery).state
    return move_delivery(t, delivery, DeliveryState.DELIVERED, owner=owner).state


def close_if_done(t: Tx, delivery: DeliveryId, *, owner: OwnerId) -> DeliveryState:
    """A delivery without anything left to send is done; its state then."""
    return _close(t, delivery, owner)


def leave(
    t: Tx, delivery: DeliveryId, state: DeliveryState, *, owner: OwnerId, error: str | None
) -> Delivery:
    """
    Whoever sends it goes no further; one that was given up meanwhile stays so.

    :raises NotFound: if there is no such delivery
    :raises WrongMove: if it is not on its way any more
    """
    # Locked, so that nobody drops it between the look and the move.
    t.one("SELECT state FROM delivery WHERE id = $1 @LOCK", delivery)
    found = get_delivery(t, delivery)
    if found.state in (DeliveryState.FAILED, DeliveryState.DELIVERED):
        raise InvalidTransition("delivery", old=found.state.value, new=state.value)
    return move_delivery(t, delivery, state, owner=owner, error=error)


def rechunk(t: Tx, delivery: DeliveryId, position: int, body: str) -> None:
    """Put another form of the same text in the place of a part that was refused."""
    t.run(
        """
        UPDATE delivery_chunk SET body = $3
        WHERE delivery_id = $1 AND position = $2 AND state <> 'delivered'
        """,
        delivery,
        position,
        body,
    )


def undelivered(t: Tx) -> list[RouteKey]:
    """Routes with something that is to be sent, in the order of what comes first."""
    found = t.all(
        """
        SELECT route FROM delivery WHERE state NOT IN ('delivered', 'failed')
        GROUP BY route ORDER BY min(n)
        """
    )
    return [row[0] for row in found]


def letters(
    t: Tx, states: Sequence[DeliveryState], *, limit: int = 200
) -> list[tuple[Delivery, int]]:
    """Deliveries in these states, the newest first, each with the time (ms) of its last change."""
    kept = {state.value for state in states}
    found = t.all(
        """
        SELECT id, conversation_id, turn_id, route, seq, kind, body, state, attempts, due_at,
               error, created_at, updated_at
        FROM delivery WHERE state <> 'delivered' ORDER BY n DESC
        """
    )
    return [(rows.delivery(row[:12]), row[12]) for row in found if row[7] in kept][:limit]


def retry(t: Tx, delivery: DeliveryId) -> Delivery:
    """
    Send once more what was given up; what was delivered of it stays delivered.

    :raises NotFound: if there is no such delivery
    :raises WrongMove: if it was not given up
    """
    found = get_delivery(t, delivery)
    if found.state is not DeliveryState.FAILED:
        raise InvalidTransition("delivery", old=found.state.value, new=DeliveryState.PENDING.value)
    t.run(
        """
        UPDATE delivery_chunk SET state = 'pending'
        WHERE delivery_id = $1 AND state <> 'delivered'
        """,
        delivery,
    )
    moved = move_delivery(t, delivery, DeliveryState.PENDING)
    t.run("UPDATE delivery SET attempts = 0, due_at = $2 WHERE id = $1", delivery, t.now)
    t.wake(f"{TOPIC}{found.route}")
    return moved


def drop(t: Tx, delivery: DeliveryId, *, why: str) -> Delivery:
    """
    Give up a delivery that was not made.

    :raises NotFound: if there is no such delivery
    :raises WrongMove: if it was made
    """
    found = get_delivery(t, delivery)
    moved = move_delivery(t, delivery, DeliveryState.FAILED, error=why)
    t.wake(f"{TOPIC}{found.route}")
    return moved
