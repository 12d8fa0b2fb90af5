"""Moves of a channel that sends what turns have to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.delivery import TRANSITIONS, DeliveryState
from clew.errors import InvalidTransition
from clew.store.transactions import deliveries

if TYPE_CHECKING:
    from clew.core.ids import DeliveryId, OwnerId
    from clew.core.route import Route
    from tests.contract.simulation.sim import Sim


def claim(sim: Sim, route: Route, owner: OwnerId) -> None:
    """The first unsent delivery of a route; one that a lost owner was at is unknown first."""
    number = sim.new("op")
    found = sim.desk.do(deliveries.claim_next_delivery, route.key, owner=owner, claim=number)
    again = sim.desk.do(deliveries.claim_next_delivery, route.key, owner=owner, claim=number)
    assert again == found, "a claim whose answer was lost was not repeated"
    if found is None:
        return
    before = sim.deliveries[found.id]
    if before is DeliveryState.PENDING:
        assert found.state is DeliveryState.SENDING
        sim.desk.do(deliveries.store_chunks, found.id, ["one", "two"])
    else:
        assert found.state is DeliveryState.UNKNOWN
    sim.deliveries[found.id] = found.state
    sim.sending[found.id] = owner
    first = next(
        key for key, state in sim.deliveries.items()
        if state in _OPEN and sim.desk.do(deliveries.get_delivery, key).route == route.key
    )  # fmt: skip
    assert first == found.id, "a later delivery was sent before an earlier one"


_OPEN = (DeliveryState.PENDING, DeliveryState.SENDING, DeliveryState.UNKNOWN)


def move(sim: Sim, index: int, state: DeliveryState, owner: OwnerId) -> None:
    """Any move: the table decides, and nothing else."""
    delivery = list(sim.deliveries)[index % len(sim.deliveries)]
    before = sim.deliveries[delivery]
    if state not in TRANSITIONS[before] and state is not before:
        sim.refused(InvalidTransition, deliveries.set_delivery_state, delivery, state, owner=owner)
        return
    if before is state is DeliveryState.SENDING and sim.sending.get(delivery) != owner:
        sim.refused(InvalidTransition, deliveries.set_delivery_state, delivery, state, owner=owner)
        return
    moved = sim.move(
        lambda d: (d.id, d.state, d.attempts), deliveries.set_delivery_state, delivery, state,
        owner=owner,
    )  # fmt: skip
    assert moved.state is state
    sim.sending[delivery] = owner
    sim.deliveries[delivery] = state


def send(sim: Sim, index: int) -> None:
    """Each chunk is marked, sent, and marked with the platform's id."""
    delivery = list(sim.deliveries)[index % len(sim.deliveries)]
    for chunk in sim.desk.do(deliveries.get_chunks, delivery):
        if chunk.state is DeliveryState.PENDING:
            _send(sim, delivery, chunk.position)
            return


def _send(sim: Sim, delivery: DeliveryId, position: int) -> None:
    if sim.deliveries[delivery] is not DeliveryState.SENDING:
        return
    sim.desk.do(deliveries.set_chunk_state, delivery, position, DeliveryState.SENDING)
    sent = sim.move(
        lambda c: c, deliveries.set_chunk_state, delivery, position, DeliveryState.DELIVERED,
        platform_id=sim.new("msg"),
    )  # fmt: skip
    assert sent.state is DeliveryState.DELIVERED
