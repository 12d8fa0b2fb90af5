"""Moves of the fronts: inputs, and what a person does to the line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.clock import from_millis
from clew.core import work_queue
from clew.core.double_text import DoubleText
from clew.core.ids import ConversationId, InboxId
from clew.core.inbox import AcceptResult, InboxKind, InboxOutcome, NewInput
from clew.core.turn import StopRequest
from clew.errors import NotFound
from clew.store.transactions import context, conversations, inbox
from tests.contract.simulation.model import Item, Thread
from tests.contract.simulation.sim import ROUTES, Sim

if TYPE_CHECKING:
    from clew.core.route import Route
    from clew.store.contract import Tx

_STOPS = {DoubleText.INTERRUPT: StopRequest.INTERRUPT, DoubleText.ROLLBACK: StopRequest.ROLLBACK}


def who(accepted: AcceptResult) -> object:
    return accepted.inbox_id, accepted.conversation_id


def new_thread(sim: Sim, conversation: ConversationId) -> Thread:
    """The model of a conversation that the store has just opened."""
    found = sim.desk.do(context.read_head_context, conversation)
    thread = Thread(id=conversation)
    thread.opened(found.session.id, tuple(message.message for message in found.messages))
    thread.after = [thread.context]
    sim.threads[conversation] = thread
    return thread


def accept(
    sim: Sim, target: Route | ConversationId, kind: InboxKind, rule: DoubleText, *, event: bool
) -> None:
    """A front hands something in."""
    platform_event = ("telegram", "bot", sim.new("event")) if event else None
    item = NewInput(
        id=InboxId(sim.new("inb")),
        kind=kind,
        text=sim.new(("close", "compress", "nothing")[len(sim.events) % 3]),
        double_text=rule,
        event=platform_event,
    )
    new = ConversationId(sim.new("cnv"))
    accepted = sim.call(
        who,
        inbox.accept_input,
        item,
        target=target,
        new_conversation=new,
        session_ids=sim.session_ids,
    )
    known = target if isinstance(target, str) else sim.routes.get(target.key)
    assert accepted.conversation_id == (known or new)
    assert not accepted.duplicate
    if not isinstance(target, str):
        sim.routes[target.key] = accepted.conversation_id
    thread = sim.threads.get(accepted.conversation_id) or new_thread(sim, new)
    sim.touched.add(thread.id)
    if platform_event is not None:
        sim.events[platform_event] = item.id
    _model(thread, item, accepted)


def _model(thread: Thread, item: NewInput, accepted: AcceptResult) -> None:
    rejected = (
        thread.busy and item.double_text is DoubleText.REJECT and item.kind is InboxKind.MESSAGE
    )
    assert accepted.outcome is (InboxOutcome.REJECTED if rejected else None)
    assert accepted.position == len(thread.items)
    if rejected:
        return
    thread.items[item.id] = Item(id=item.id, kind=item.kind, rule=item.double_text, text=item.text)
    if thread.turn is not None and thread.turn.stop is None:
        thread.turn.stop = _STOPS.get(item.double_text)


def redeliver(sim: Sim, index: int, route: Route) -> None:
    """A platform delivers an event again, under a new id of ours: nothing is stored."""
    event = list(sim.events)[index % len(sim.events)]
    before = sim.desk.snapshot()
    again = NewInput(
        id=InboxId(sim.new("inb")), text="again", double_text=DoubleText.QUEUE, event=event
    )
    accepted = sim.desk.do(
        inbox.accept_input,
        again,
        target=route,
        new_conversation=ConversationId(sim.new("cnv")),
        session_ids=sim.session_ids,
    )
    assert accepted.duplicate
    assert accepted.inbox_id == sim.events[event]
    assert sim.desk.snapshot() == before


def cancel(sim: Sim, thread: Thread, index: int) -> None:
    item = list(thread.items)[index % len(thread.items)]
    assert sim.desk.do(inbox.cancel_item, item, note="the person took it back")
    assert not sim.desk.do(inbox.cancel_item, item, note="again")
    del thread.items[item]
    sim.touched.add(thread.id)


def edit(sim: Sim, thread: Thread, index: int) -> None:
    item = list(thread.items.values())[index % len(thread.items)]
    text, changes = sim.new("edited"), item.kind is InboxKind.MESSAGE
    assert sim.desk.do(inbox.edit_message, item.id, text) is changes
    if changes:
        item.text = text
    sim.touched.add(thread.id)


def move_route(sim: Sim, route: Route, thread: Thread) -> None:
    before = sim.desk.do(conversations.move_route, route.key, thread.id)
    assert before == sim.routes.get(route.key)
    sim.routes[route.key] = thread.id


def resolve(sim: Sim, thread: Thread, index: int) -> None:
    """Every session id that a conversation ever had leads to it, and so do its routes."""
    session = thread.sessions[index % len(thread.sessions)].id
    assert sim.desk.do(conversations.resolve_conversation, session) == thread.id
    for route in ROUTES:
        if route.key in sim.routes:
            assert (
                sim.desk.do(conversations.resolve_conversation, route.key) == sim.routes[route.key]
            )
        else:
            sim.refused(NotFound, conversations.resolve_conversation, route.key)


def due(t: Tx, conversation: ConversationId) -> work_queue.Work | None:
    """Return the work that the queue needs, by the pure rule."""
    return work_queue.next_work(inbox.list_open_items(t, conversation), from_millis(t.now))
