"""Moves of fate: time, deaths, stale owners, repeated calls, and deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core import channel_events
from clew.core import session as reasons
from clew.core.delivery import DeliveryKind, DeliveryState
from clew.core.double_text import DoubleText
from clew.core.entry import Role
from clew.core.ids import ConversationId, InboxId, OwnerId
from clew.core.inbox import NewInput
from clew.core.session import Head
from clew.errors import LeaseLost, NotFound
from clew.store.transactions import (
    context,
    deletion,
    deliveries,
    entries,
    inbox,
    leases,
    sessions,
    turns,
)
from clew.wording import DELETED_NOTICE
from tests.contract.simulation.sim import CHATS, Call, Sim, compose

if TYPE_CHECKING:
    from clew.core.delivery import Delivery
    from clew.core.ids import DeliveryId
    from clew.store.contract import Tx
    from tests.contract.simulation.model import Run, Thread

_ENDED = (DeliveryState.DELIVERED, DeliveryState.FAILED)


def new_owner(sim: Sim) -> OwnerId:
    owner = OwnerId(sim.new("own"))
    sim.owners.append(owner)
    sim.world.alive.add(owner)
    return owner


def kill(sim: Sim, owner: OwnerId) -> None:
    """The process is gone, with all that it had in memory."""
    sim.world.alive.discard(owner)
    sim.owners.remove(owner)
    for run in [run for run in sim.runs if run.owner == owner]:
        sim.drop(run)


def lose_touch(sim: Sim, owner: OwnerId) -> None:
    """The proof of life is gone, the process is not: it goes on until it notices."""
    sim.world.alive.discard(owner)


def use_ghost(sim: Sim, run: Run, index: int) -> None:
    """Whatever an owner whose lease is gone tries to write is refused, and changes nothing."""
    if sim.holds(run) or run.thread.id in sim.deleted:
        return
    before = sim.desk.snapshot()
    drafts = [sim.draft(Role.ASSISTANT)]
    expected = Head(session=run.session, last_seq=len(run.thread.log))
    writes = (
        lambda: sim.refused(LeaseLost, entries.append_entries, run.lease, run.session, drafts),
        lambda: sim.refused(LeaseLost, leases.renew_lease, run.lease),
        lambda: sim.refused(LeaseLost, sessions.end_head, run.lease, reasons.IDLE),
        lambda: sim.refused(
            LeaseLost, sessions.rotate_session, run.lease, operation=sim.new("op"),
            expected=expected,
            base=(), reason=reasons.REWIND, session_ids=sim.session_ids,
        ),
        lambda: sim.desk.do(leases.release_lease, run.lease),
        lambda: run.turn and sim.refused(
            LeaseLost, turns.store_step, run.lease, run.session, run.turn, drafts
        ),
        lambda: run.turn and sim.refused(
            LeaseLost, turns.steer_turn, run.lease, run.session, run.turn, step=1, after=0,
            compose=compose,
        ),
    )  # fmt: skip
    writes[index % len(writes)]()
    assert sim.desk.snapshot() == before


def repeat(sim: Sim, index: int) -> None:
    sim.repeat(sim.history[index % len(sim.history)], strict=False)


def delete(sim: Sim, thread: Thread) -> None:
    """A conversation is gone at once, whatever was going on in it."""
    failed = sim.desk.do(_deliveries_of, thread.id)
    assert sim.call(bool, deletion.mark_deleted, thread.id, notice=DELETED_NOTICE)
    del sim.threads[thread.id]
    sim.deleted.append(thread.id)
    for run in [run for run in sim.runs if run.thread is thread]:
        sim.drop(run)
    sim.deliveries = {key: state for key, state in sim.deliveries.items() if key not in failed}
    _chats_are_told(sim, thread, [one for one in _stored(sim, thread) if one.id not in failed])
    sim.routes = {key: to for key, to in sim.routes.items() if to != thread.id}
    # An input without a platform event counts as new when it is repeated.
    sim.history = [call for call in sim.history if not _would_come_back(call, thread.id)]
    _nothing_lands(sim, thread)


def _chats_are_told(sim: Sim, thread: Thread, told: list[Delivery]) -> None:
    """Each chat that had the conversation is to get one notice of its end, and nothing else."""
    chats = [route.key for route in CHATS if sim.routes.get(route.key) == thread.id]
    notice = channel_events.dump_message(
        channel_events.OutboundMessage(text=DELETED_NOTICE, markup=False)
    )
    assert sorted(one.route for one in told) == sorted(chats)
    assert all(one.kind is DeliveryKind.NOTICE and one.body == notice for one in told)
    assert all(one.state is DeliveryState.PENDING for one in told)
    sim.deliveries |= {one.id: one.state for one in told}


def _stored(sim: Sim, thread: Thread) -> list[Delivery]:
    found = sim.desk.do(_deliveries_of, thread.id)
    return [sim.desk.do(deliveries.get_delivery, one) for one in found]


def _deliveries_of(t: Tx, conversation: ConversationId) -> list[DeliveryId]:
    found = t.fetch_all(
        "SELECT id FROM delivery WHERE conversation_id = $1 ORDER BY n", conversation
    )
    return [row[0] for row in found]


def _would_come_back(call: Call, conversation: ConversationId) -> bool:
    if call.job is inbox.accept_input:
        item: NewInput = call.args[0]
        return item.event is None and conversation in str(call.answer)
    return conversation in call.args


def _nothing_lands(sim: Sim, thread: Thread) -> None:
    item = NewInput(id=InboxId(sim.new("inb")), text="late", double_text=DoubleText.QUEUE)
    new = ConversationId(sim.new("cnv"))
    sim.refused(
        NotFound, inbox.accept_input, item, target=thread.id, new_conversation=new,
        session_ids=sim.session_ids,
    )  # fmt: skip
    sim.refused(NotFound, context.read_head_context, thread.id)
    sim.refused(NotFound, leases.acquire_lease, thread.id, owner=OwnerId("own_late"))


def delete_slice(sim: Sim, index: int) -> None:
    """Rows go; what tells a chat of the deletion stays until it has arrived or was given up."""
    conversation = sim.deleted[index % len(sim.deleted)]
    before = sim.desk.do(_deliveries_of, conversation)
    unsent = [one for one in before if sim.deliveries.get(one, _ENDED[0]) not in _ENDED]
    more = sim.desk.do(deletion.delete_slice, conversation, rows=3)
    left = sim.desk.do(_deliveries_of, conversation)
    assert set(unsent) <= set(left)
    for gone in set(before) - set(left):
        sim.deliveries.pop(gone, None)
    if not more:
        assert left == unsent
        assert (conversation in sim.desk.do(deletion.list_pending_deletions)) is bool(unsent)
