"""Deliveries: stored with their content, then advanced chunk by chunk."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

from clew.core import channel_events
from clew.core.delivery import (
    TRANSITIONS,
    Chunk,
    Delivery,
    DeliveryKind,
    DeliveryState,
    NewDelivery,
)
from clew.core.ids import DeliveryId
from clew.core.inbox import CLOCK_SKEW
from clew.core.route import LOCAL, Route
from clew.core.run_report import is_delivered
from clew.core.text import is_blank
from clew.core.transitions import check_transition
from clew.errors import InvalidTransition, NotFound
from clew.record import Record
from clew.store.transactions import rows
from clew.store.transactions.previews import delete_preview, list_previewed_routes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.channel_events import OutboundMessage
    from clew.core.delivery import OutboundText
    from clew.core.ids import ConversationId, OwnerId, TurnId
    from clew.core.lease import Lease
    from clew.core.route import RouteKey
    from clew.store.contract import Tx


#: Prefix of the wake-up topic, followed by the route, when there is something to deliver.
DELIVERY_TOPIC = "deliver:"
_CLOCK_SKEW_MS = CLOCK_SKEW // timedelta(milliseconds=1)


def add_deliveries(
    t: Tx,
    lease: Lease,
    turn: TurnId | None,
    deliveries: Sequence[NewDelivery],
    *,
    seq: int | None,
) -> None:
    """Store outbound messages, inside the transaction that stores their content."""
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
    t.execute(
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
    t.notify(f"{DELIVERY_TOPIC}{delivery.route}")


def deliver_turn_text(
    t: Tx,
    conversation: ConversationId,
    turn: TurnId,
    said: OutboundText,
    *,
    seq: int | None = None,
    failed: bool = False,
) -> None:
    """Deliver a turn's text and files on each channel that one of its inputs wants it on."""
    if is_blank(said.text) and not said.files:
        return
    for number, (route, message) in enumerate(_input_routes(t, turn, said, failed=failed)):
        direct = Route.parse(route).kind == channel_events.DM
        new = NewDelivery(
            id=said.id if number == 0 else DeliveryId(f"{said.id}.{number}"),
            route=route,
            kind=said.kind,
            body=channel_events.dump_message(
                channel_events.OutboundMessage(
                    text=said.text,
                    markup=said.markup,
                    reply_to=None if direct else message,
                    files=said.files,
                )
            ),
        )
        add_delivery(t, conversation, new, turn=turn, seq=seq)


def close_previews(t: Tx, conversation: ConversationId, turn: TurnId) -> None:
    """Replace the previews of an answer that will not come by a notice; repeatable."""
    for number, route in enumerate(list_previewed_routes(t, turn)):
        new = NewDelivery(
            id=DeliveryId(f"{turn}.unfinished.{number}"),
            route=route,
            kind=DeliveryKind.NOTICE,
            body=channel_events.dump_message(
                channel_events.OutboundMessage(
                    notice=channel_events.ChatNotice.UNFINISHED, markup=False, instead_of=turn
                )
            ),
        )
        add_delivery(t, conversation, new)


def _input_routes(
    t: Tx, turn: TurnId, said: OutboundText, *, failed: bool
) -> list[tuple[RouteKey, str | None]]:
    """Return the channel routes that get a text, each with its last platform message id."""
    found = t.fetch_all(
        """
        SELECT route, payload FROM inbox WHERE turn_id = $1 AND route IS NOT NULL ORDER BY n
        """,
        turn,
    )
    told = [(route, json.loads(payload)) for route, payload in found if is_channel_route(route)]
    last = {
        route: payload
        for route, payload in told
        if is_delivered(payload, kind=said.kind, text=said.text, failed=failed)
    }
    return [(route, payload.get("message")) for route, payload in last.items()]


def is_channel_route(route: RouteKey) -> bool:
    """Return whether a route is a chat, which gets deliveries; others read the log."""
    return route.split(":", 3)[2] != LOCAL


def deliver_to_chat(
    t: Tx,
    conversation: ConversationId,
    route: RouteKey | None,
    message: OutboundMessage,
    *,
    id: DeliveryId,
    kind: DeliveryKind,
    turn: TurnId | None = None,
) -> None:
    """Store one message for a route if it is a chat; repeating it changes nothing."""
    if route is not None and is_channel_route(route):
        new = NewDelivery(id=id, route=route, kind=kind, body=channel_events.dump_message(message))
        add_delivery(t, conversation, new, turn=turn)


def get_delivery(t: Tx, delivery: DeliveryId) -> Delivery:
    """
    Return a delivery.

    :raises NotFound: if there is no such delivery
    """
    found = rows.DELIVERY.fetch_one(t, "WHERE id = $1", delivery)
    if found is None:
        raise NotFound("delivery", delivery)
    return found


def claim_next_delivery(
    t: Tx, route: RouteKey, *, owner: OwnerId, claim: str, left: bool = False
) -> Delivery | None:
    """
    Claim the first unsent delivery of a route.

    ``None`` if it is not due, or a living owner is sending it.

    Order is kept per route: a later one waits for the first. A delivery that a lost owner
    left in ``sending`` becomes ``unknown`` and is returned in that state; with ``left``,
    for an owner that sends nothing else on this route, its own leftovers are included.
    ``claim`` is an id made by the caller for this claim: repeating it returns the same
    delivery.
    """
    row = t.fetch_one(
        """
        SELECT id, state, due_at, owner, claim, updated_at FROM delivery
        WHERE route = $1 AND state NOT IN ('delivered', 'failed') ORDER BY n LIMIT 1 @LOCK
        """,
        route,
    )
    if row is None:
        return None
    delivery, state, due_at, holder, held, updated_at = row
    # If the clock went back since, the due time would cause an unintended wait.
    if t.now < due_at and updated_at <= t.now + _CLOCK_SKEW_MS:
        return None
    if state == DeliveryState.SENDING.value:
        if (holder, held) == (owner, claim):
            return get_delivery(t, delivery)
        if (holder == owner and not left) or (holder != owner and t.is_alive(holder)):
            return None
        set_delivery_state(t, delivery, DeliveryState.UNKNOWN)
        return get_delivery(t, delivery)
    if state == DeliveryState.PENDING.value:
        set_delivery_state(t, delivery, DeliveryState.SENDING, owner=owner, claim=claim)
    return get_delivery(t, delivery)


def set_delivery_state(
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
    Change the state; ``due_at`` (ms) is a wait requested by the platform.

    Setting the current state changes nothing, unless another owner is sending it.

    :raises NotFound: if there is no such delivery
    :raises InvalidTransition: if the delivery cannot change to that state
    """
    # Locked, so that the second of two concurrent calls sees the first one's state.
    row = t.fetch_one("SELECT owner FROM delivery WHERE id = $1 @LOCK", delivery)
    found = get_delivery(t, delivery)
    if found.state is state and (state is not DeliveryState.SENDING or row == (owner,)):
        return found
    check_transition("delivery", TRANSITIONS, found.state, state)
    t.execute(
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
    _update_sending_chunks(t, delivery, state)
    t.notify(found.conversation_id)
    return get_delivery(t, delivery)


def _update_sending_chunks(t: Tx, delivery: DeliveryId, state: DeliveryState) -> None:
    # The chunk being sent gets the delivery's state; earlier chunks stay delivered.
    if state in (DeliveryState.UNKNOWN, DeliveryState.PENDING, DeliveryState.FAILED):
        t.execute(
            "UPDATE delivery_chunk SET state = $2 WHERE delivery_id = $1 AND state = 'sending'",
            delivery,
            state.value,
        )


def store_chunks(t: Tx, delivery: DeliveryId, bodies: Sequence[str]) -> list[Chunk]:
    """
    Store the parts of a delivery before the first is sent; stored parts stay unchanged.

    The parts of a delivery that is unknown without an attempt start as unknown: a restored
    backup does not know what was sent after it.

    :raises NotFound: if the delivery was deleted meanwhile
    :raises InvalidTransition: if it was marked as failed meanwhile
    """
    # Locked, so that a deletion finds either no parts or all of them.
    row = t.fetch_one("SELECT state, attempts FROM delivery WHERE id = $1 @LOCK", delivery)
    if row is None:
        raise NotFound("delivery", delivery)
    if row[0] == DeliveryState.FAILED.value:
        raise InvalidTransition("delivery", old=row[0], new=DeliveryState.SENDING.value)
    doubted = row == (DeliveryState.UNKNOWN.value, 0)
    state = DeliveryState.UNKNOWN if doubted else DeliveryState.PENDING
    for position, body in enumerate(bodies):
        t.execute(
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
    """Return the parts of a delivery, in order."""
    return rows.CHUNK.fetch_all(t, "WHERE delivery_id = $1 ORDER BY position", delivery)


def set_chunk_state(
    t: Tx,
    delivery: DeliveryId,
    position: int,
    state: DeliveryState,
    *,
    platform_id: str | None = None,
    repeated: bool = False,
) -> Chunk:
    """
    Change the state of a part; ``delivered`` comes with the platform's message id.

    Setting the current state changes nothing.

    :raises NotFound: if there is no such part
    :raises InvalidTransition: if the part cannot change to that state
    """
    found = rows.CHUNK.fetch_one(
        t, "WHERE delivery_id = $1 AND position = $2 @LOCK", delivery, position
    )
    if found is None:
        raise NotFound("part", f"{delivery}/{position}")
    if (found.state, found.platform_id) == (state, platform_id):
        return found
    check_transition("part", TRANSITIONS, found.state, state)
    t.execute(
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


class ClaimedDelivery(Record):
    """A delivery claimed for sending, with its parts if they are stored."""

    delivery: Delivery
    chunks: tuple[Chunk, ...]


def claim_chat_delivery(
    t: Tx, routes: Sequence[RouteKey], *, owner: OwnerId, claim: str
) -> ClaimedDelivery | None:
    """
    Claim the first unsent delivery among several routes of one chat.

    ``None`` if there is none, or the first one cannot be claimed: later ones wait for it.
    The caller must be sending no other one: what this owner left in ``sending`` becomes
    ``unknown``.
    """
    waiting: dict[int, RouteKey] = {}
    for route in routes:
        n = t.fetch_value(
            """
            SELECT n FROM delivery
            WHERE route = $1 AND state NOT IN ('delivered', 'failed') ORDER BY n LIMIT 1
            """,
            route,
        )
        if n is not None:
            waiting[n] = route
    if not waiting:
        return None
    found = claim_next_delivery(t, waiting[min(waiting)], owner=owner, claim=claim, left=True)
    if found is None:
        return None
    return ClaimedDelivery(delivery=found, chunks=tuple(get_chunks(t, found.id)))


def store_chunks_over_preview(
    t: Tx, delivery: DeliveryId, bodies: Sequence[str], *, preview: TurnId | None
) -> list[Chunk]:
    """Do the same as ``store_chunks``; the first part may replace a turn's preview."""
    if preview is not None:
        delete_preview(t, get_delivery(t, delivery).route, preview)
    return store_chunks(t, delivery, bodies)


def start_chunk(
    t: Tx, delivery: DeliveryId, position: int, *, owner: OwnerId, repeated: bool = False
) -> Chunk:
    """Mark a part as being sent; ``repeated`` if it may have been sent before."""
    set_delivery_state(t, delivery, DeliveryState.SENDING, owner=owner)
    return set_chunk_state(t, delivery, position, DeliveryState.SENDING, repeated=repeated)


def complete_chunk(
    t: Tx, delivery: DeliveryId, position: int, platform_id: str, *, owner: OwnerId
) -> DeliveryState:
    """Mark a part as delivered, and return the delivery's state, done after the last part."""
    if get_delivery(t, delivery).state is DeliveryState.FAILED:
        # It was dropped while being sent.
        return DeliveryState.FAILED
    set_chunk_state(t, delivery, position, DeliveryState.DELIVERED, platform_id=platform_id)
    return complete_if_sent(t, delivery, owner=owner)


def complete_if_sent(t: Tx, delivery: DeliveryId, *, owner: OwnerId) -> DeliveryState:
    """Complete a delivery with no unsent parts, and return its state."""
    if t.exists(
        "SELECT 1 FROM delivery_chunk WHERE delivery_id = $1 AND state <> 'delivered' LIMIT 1",
        delivery,
    ):
        return get_delivery(t, delivery).state
    return set_delivery_state(t, delivery, DeliveryState.DELIVERED, owner=owner).state


def stop_sending(
    t: Tx, delivery: DeliveryId, state: DeliveryState, *, owner: OwnerId, error: str | None
) -> Delivery:
    """
    Stop sending a delivery and set its state; one that was dropped meanwhile stays failed.

    :raises NotFound: if there is no such delivery
    :raises InvalidTransition: if it is not being sent any more
    """
    # Locked, so that it cannot be dropped between the read and the write.
    t.fetch_one("SELECT state FROM delivery WHERE id = $1 @LOCK", delivery)
    found = get_delivery(t, delivery)
    if found.state in (DeliveryState.FAILED, DeliveryState.DELIVERED):
        raise InvalidTransition("delivery", old=found.state.value, new=state.value)
    return set_delivery_state(t, delivery, state, owner=owner, error=error)


def replace_delivery(
    t: Tx, delivery: Delivery, notice: OutboundMessage, *, owner: OwnerId, error: str
) -> None:
    """
    Give a delivery up, and deliver a notice in its place; repeating it delivers no second one.

    :raises NotFound: if there is no such delivery
    :raises InvalidTransition: if it is not being sent any more
    """
    stop_sending(t, delivery.id, DeliveryState.FAILED, owner=owner, error=error)
    new = NewDelivery(
        id=DeliveryId(f"{delivery.id}.instead"),
        route=delivery.route,
        kind=DeliveryKind.NOTICE,
        body=channel_events.dump_message(notice),
    )
    add_delivery(t, delivery.conversation_id, new, turn=delivery.turn_id)


def replace_chunk_body(t: Tx, delivery: DeliveryId, position: int, body: str) -> None:
    """Replace the body of a refused part by another form of the same text."""
    t.execute(
        """
        UPDATE delivery_chunk SET body = $3
        WHERE delivery_id = $1 AND position = $2 AND state <> 'delivered'
        """,
        delivery,
        position,
        body,
    )


def list_undelivered_routes(t: Tx) -> list[RouteKey]:
    """Return the routes with unsent deliveries, ordered by their first one."""
    return t.fetch_column("""
        SELECT route FROM delivery WHERE state NOT IN ('delivered', 'failed')
        GROUP BY route ORDER BY min(n)
        """)


def list_dead_letters(
    t: Tx,
    states: Sequence[DeliveryState],
    *,
    limit: int = 200,
    before: DeliveryId | None = None,
    channel: str | None = None,
) -> list[tuple[Delivery, int]]:
    """
    Return deliveries in these states, newest first, each with its last change (ms).

    Delivered ones are never among them. ``before`` is the last delivery of the previous page,
    ``channel`` the NAME of the only channel whose deliveries are returned.

    :raises NotFound: if there is no delivery ``before``
    """
    if before is not None:
        get_delivery(t, before)
    # Routes are text: the pattern finds those to the channel, and perhaps some others.
    pattern = "%" if channel is None or not channel.isalnum() else f"%:{channel}%"
    found: list[tuple[Delivery, int]] = []
    while True:
        page = _read_dead_letters(t, states, limit, before, pattern)
        found += [
            one for one in page if channel is None or Route.parse(one[0].route).channel == channel
        ]
        if len(found) >= limit or len(page) < limit:
            return found[:limit]
        before = page[-1][0].id


def _read_dead_letters(
    t: Tx,
    states: Sequence[DeliveryState],
    limit: int,
    before: DeliveryId | None,
    routes: str,
) -> list[tuple[Delivery, int]]:
    """Return a page of deliveries; those to other routes may be among them."""
    return rows.CHANGED_DELIVERY.fetch_all(
        t,
        """
        WHERE state <> 'delivered' AND $1 LIKE '%,' || state || ',%'
          AND ($2 = '' OR n < (SELECT n FROM delivery WHERE id = $2)) AND route LIKE $4
        ORDER BY n DESC LIMIT $3
        """,
        f",{','.join(state.value for state in states)},",
        before or "",
        limit,
        routes,
    )


def retry_delivery(t: Tx, delivery: DeliveryId) -> Delivery:
    """
    Queue a failed delivery again; its delivered parts stay delivered.

    :raises NotFound: if there is no such delivery
    :raises InvalidTransition: if it has not failed
    """
    found = get_delivery(t, delivery)
    if found.state is not DeliveryState.FAILED:
        raise InvalidTransition("delivery", old=found.state.value, new=DeliveryState.PENDING.value)
    t.execute(
        """
        UPDATE delivery_chunk SET state = 'pending'
        WHERE delivery_id = $1 AND state <> 'delivered'
        """,
        delivery,
    )
    moved = set_delivery_state(t, delivery, DeliveryState.PENDING)
    t.execute("UPDATE delivery SET attempts = 0, due_at = $2 WHERE id = $1", delivery, t.now)
    t.notify(f"{DELIVERY_TOPIC}{found.route}")
    return moved


def drop_delivery(t: Tx, delivery: DeliveryId, *, why: str) -> Delivery:
    """
    Mark an undelivered message as failed.

    :raises NotFound: if there is no such delivery
    :raises InvalidTransition: if it was delivered
    """
    found = get_delivery(t, delivery)
    moved = set_delivery_state(t, delivery, DeliveryState.FAILED, error=why)
    t.notify(f"{DELIVERY_TOPIC}{found.route}")
    return moved
