"""Recorded model requests, rebuilt from the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.agent import messages
from clew.agent.protocols import LoopContext
from clew.agent.request_replay import rebuild_request_body
from clew.core.session_prefix import join_instructions
from clew.errors import NotFound
from clew.record import Record
from clew.store.transactions import model_requests

if TYPE_CHECKING:
    from clew.agent.failover import ModelChain
    from clew.agent.models import Model
    from clew.core.entry import Entry
    from clew.core.ids import ConversationId, TurnId
    from clew.engine.services import EngineServices
    from clew.store.transactions.model_requests import TurnRequest


class RecordedRequest(Record):
    """A request as it was sent to a model."""

    turn: TurnId
    #: Counts from 1 over the turn's model requests that were answered.
    step: int
    #: The response, or a failed attempt. Its session and the entries before it are the request's
    #: content.
    entry: Entry
    #: As in the settings; ``None`` if the entry does not record it.
    model: str | None
    stream: bool
    instructions: str | None
    context: LoopContext
    #: The bytes sent; ``None`` for a model without a wire format, such as ``offline``.
    body: bytes | None


async def find_request(means: EngineServices, turn: TurnId, step: int) -> RecordedRequest:
    """
    Return the rebuilt request of a step; the last one if several were sent for it.

    Messages, instructions and tools are the stored ones; the agent and the model are the
    current ones.

    :raises NotFound: if there is no such turn, or no request for this step is stored
    :raises OperationRefused: if nothing was sent: the step failed before its request
    :raises SettingsError: if its model cannot be used here any more
    """
    found = await list_requests(means, turn)
    asking = next((one for one in reversed(found) if one.step == step), None)
    if asking is None:
        raise NotFound("request", f"{turn}, step {step}")
    return await rebuild_request(means, turn, asking)


async def list_requests(means: EngineServices, turn: TurnId) -> list[TurnRequest]:
    """
    Return the stored request records of a turn, in order.

    :raises NotFound: if there is no such turn
    """
    found = await means.store.read(model_requests.list_turn_requests, turn)
    return [asking for asking in found if not messages.is_unrequested(asking.entry.message)]


async def rebuild_request(
    means: EngineServices, turn: TurnId, asking: TurnRequest
) -> RecordedRequest:
    """Rebuild one request of a turn, as ``find_request``."""
    entry = asking.entry
    before = await means.store.read(model_requests.read_context_before, entry)
    asked = messages.parse_request_info(entry.message)
    name, stream = (None, False) if asked is None else (asked.model, asked.stream)
    context = LoopContext(
        messages=await means.context_cache.load_messages(
            [message.message for message in before.messages]
        ),
        prefix=await means.context_cache.load_prefix(before.session),
        steps=0,
    )
    model = await resolve_model(means, entry.conversation_id, name)
    return RecordedRequest(
        turn=turn,
        step=asking.step,
        entry=entry,
        model=name,
        stream=stream,
        instructions=join_instructions(before.session.instructions),
        context=context,
        body=await rebuild_request_body(means.loop, context, model, stream=stream),
    )


async def resolve_model(
    means: EngineServices, conversation: ConversationId, name: str | None
) -> Model:
    """Return the model of this name: one in use, or one that is built for it."""
    in_use: list[ModelChain] = [means.models]
    if (chosen := await means.model_overrides.get_model_chain(conversation)) is not None:
        in_use.insert(0, chosen)
    for models in in_use:
        if (found := models.find_by_name(name)) is not None:
            return found
    assert name is not None
    return means.model_overrides.get_model(name)
