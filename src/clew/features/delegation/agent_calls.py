"""Calls of the tool ``agents``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import UsageError
from clew.features.delegation import front
from clew.features.delegation.wording import format_started, format_state
from clew.plugin import get_turn_context
from clew.record import Record

if TYPE_CHECKING:
    from clew.features.delegation.children import Child
    from clew.features.delegation.settings import DelegationSettings
    from clew.plugin import TurnContext
    from clew.store.contract import Tx


class AgentCall(Record):
    """A call as the model writes it."""

    action: str
    task: str
    text: str
    start: int


async def run(call: AgentCall, settings: DelegationSettings) -> str:
    """
    Carry out a call and return the text for the model.

    :raises UsageError: saying what is wrong and what would do
    :raises NotFound: if the conversation has no such task
    """
    context = get_turn_context()
    if context is None or context.call_key is None:
        raise UsageError("tasks are looked after in turns only")
    store = context.services.store
    if call.action == "list":
        return await store.read(_list, context)
    if call.action == "tell":
        told = await store.write(_tell, context, call, settings)
        context.services.work_on(told.conversation_id)
        return format_started(told) if told.background else "It is told at its next step."
    run_call = _stop if call.action == "stop" else _read
    return await store.write(run_call, context, call)


def _find(t: Tx, context: TurnContext, name: str) -> Child:
    return front.find_task(t, name, viewer=context.scope, below=context.conversation)


def _list(t: Tx, context: TurnContext) -> str:
    found = front.list_visible(t, viewer=context.scope, below=context.conversation, done=True)
    return "\n".join(front.format_child(t, child) for child in found) or "There are no tasks."


def _tell(t: Tx, context: TurnContext, call: AgentCall, settings: DelegationSettings) -> Child:
    return front.tell_from_turn(t, context, _find(t, context, call.task), call.text, settings)


def _stop(t: Tx, context: TurnContext, call: AgentCall) -> str:
    child = front.stop_task(t, _find(t, context, call.task), reason="asked")
    return f"{child.title}: {format_state(child)}."


def _read(t: Tx, context: TurnContext, call: AgentCall) -> str:
    assert context.call_key is not None
    child = _find(t, context, call.task)
    part = front.read_for_turn(t, child, context.call_key, start=max(0, call.start))
    end = part.start + len(part.text)
    head = f"{child.title}: {format_state(child)}, characters {part.start} to {end} of {part.size}"
    return f"{head}\n\n{part.text}"
