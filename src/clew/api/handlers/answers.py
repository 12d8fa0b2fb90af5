"""Operation that waits for the answer to a message."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Literal

from clew.api.outcome_mapping import text_or_problem
from clew.core.events import ConversationStateChanged, TurnFinished
from clew.core.ids import InboxId
from clew.core.turn import TurnState
from clew.wire import serializers
from clew.wire.models import ApprovalShape
from clew.wire.results import MessageAnswer

if TYPE_CHECKING:
    from clew.api.operation_call import OperationCall
    from clew.core.conversation_state import ConversationState
    from clew.core.inbox import InboxItem
    from clew.core.turn import Turn
    from clew.engine.engine import Engine
    from clew.wire import params

_OPEN = frozenset({"queued", "running"})


async def wait_for_answer(call: OperationCall, given: params.WaitParams) -> MessageAnswer:
    item = await call.engine.get_input(InboxId(given.inbox_id))
    with suppress(TimeoutError):
        async with asyncio.timeout(given.seconds):
            await _wait_until_settled(call.engine, item)
    return await _read_answer(call.engine, item)


async def _wait_until_settled(engine: Engine, item: InboxItem) -> None:
    """Wait until an input is done, or only a person can make its conversation go on."""
    engine.wake_conversation(item.conversation_id)
    view = await engine.get_view(item.conversation_id)
    events = engine.stream_events(
        item.conversation_id, after=view.conversation.last_seq, live=False, with_standing=True
    )
    async with aclosing(events):
        async for event in events:
            if not isinstance(event, (ConversationStateChanged, TurnFinished)):
                continue
            if (await _read_answer(engine, item)).state not in _OPEN:
                return


async def _read_answer(engine: Engine, item: InboxItem) -> MessageAnswer:
    # The end is read last: what has ended does not wait any more.
    standing = await engine.get_state(item.conversation_id)
    turn = (await engine.responses.read(item.id)).turn
    end = await engine.get_input_result(item.id)
    found = "" if end is None else text_or_problem(end)
    state = "done" if end is not None else _find_state(standing, turn)
    shown = standing.approvals if state == "waiting" else ()
    return MessageAnswer(
        inbox_id=item.id,
        conversation=item.conversation_id,
        state=state,
        turn=None if turn is None else turn.id,
        text=found if isinstance(found, str) else found.message,
        error=None if isinstance(found, str) else found.code,
        approvals=[
            ApprovalShape.model_validate(serializers.serialize_approval(one)) for one in shown
        ],
    )


def _find_state(
    standing: ConversationState, turn: Turn | None
) -> Literal["queued", "running", "waiting"]:
    is_asking = standing.turn is not None and standing.turn.state is TurnState.WAITING
    if is_asking and standing.approvals:
        return "waiting"
    return "queued" if turn is None else "running"
