"""Requests: what a model was sent, made again from the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.agent import messages
from clew.agent.ports import LoopContext
from clew.agent.rebuilding import rebuild_request_body
from clew.errors import NotFound
from clew.store.transactions import requests

if TYPE_CHECKING:
    from clew.agent.choice import ModelChain
    from clew.agent.models import Model
    from clew.core.entry import Entry
    from clew.core.ids import ConversationId, TurnId
    from clew.engine.turns import Means
    from clew.store.transactions.requests import TurnRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """A request as it went to a model."""

    turn: TurnId
    #: Counts from 1 over the turn's model requests that were answered.
    step: int
    #: What came of it: the response, or an attempt that failed. Its session and the entries before
    #: it are what was sent.
    entry: Entry
    #: As a setting names it; ``None`` where the entry does not say.
    model: str | None
    stream: bool
    instructions: str | None
    context: LoopContext
    #: As it went over the wire; ``None`` for a model without one, such as ``offline``.
    body: bytes | None


async def request_of(means: Means, turn: TurnId, step: int) -> Sent:
    """
    The request of a step, made again; of several that were made for it the last one.

    Messages and instructions are the stored ones, the agent with its tools and the model are those
    of now.

    :raises NotFound: if there is no such turn, or no request for this step is stored
    :raises Refused: if nothing was sent: the step failed before its request
    :raises SettingsError: if the model that was asked cannot be used here any more
    """
    found = await requests_of(means, turn)
    asking = next((one for one in reversed(found) if one.step == step), None)
    if asking is None:
        raise NotFound("request", f"{turn}, step {step}")
    return await made_again(means, turn, asking)


async def requests_of(means: Means, turn: TurnId) -> list[TurnRequest]:
    """
    What is stored of a turn's requests, in order.

    :raises NotFound: if there is no such turn
    """
    found = await means.store.read(requests.list_turn_requests, turn)
    return [asking for asking in found if not messages.is_unrequested(asking.entry.message)]


async def made_again(means: Means, turn: TurnId, asking: TurnRequest) -> Sent:
    """One request of a turn; as ``request_of``."""
    entry = asking.entry
    before = await means.store.read(requests.read_context_before, entry)
    asked = messages.parse_request_info(entry.message)
    name, stream = (None, False) if asked is None else (asked.model, asked.stream)
    context = LoopContext(
        messages=await means.warm.read([message.message for message in before.messages]),
        instructions=before.session.instructions,
        steps=0,
    )
    model = await model_of(means, entry.conversation_id, name)
    return Sent(
        turn=turn,
        step=asking.step,
        entry=entry,
        model=name,
        stream=stream,
        instructions=context.instructions,
        context=context,
        body=await rebuild_request_body(means.loop, context, model, stream=stream),
    )


async def model_of(means: Means, conversation: ConversationId, name: str | None) -> Model:
    """The model of this name: one in use, or one that is made for it."""
    in_use: list[ModelChain] = [means.models]
    if (chosen := await means.choice.models(conversation)) is not None:
        in_use.insert(0, chosen)
    for models in in_use:
        if (found := models.find_by_name(name)) is not None:
            return found
    assert name is not None
    return means.choice.made(name)
