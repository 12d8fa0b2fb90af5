"""``POST /v1/chat/completions``: one turn of a stored conversation, plain or as a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.api.answers import Answer
from clew.api.asking import Asking
from clew.api.chat_order import order_of
from clew.api.chat_stream import ChatStream
from clew.api.keys import caller_of, key_of
from clew.api.pace import PACE, Pace
from clew.api.sse import Ear, EventStream, Heard, sent
from clew.core.events import InputCompleted
from clew.engine.orders import ClientHistory
from clew.errors import ClewError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from clew.api.chat_order import ChatOrder
    from clew.api.schemas import ChatRequest, Nothing
    from clew.core.events import ConversationEvent
    from clew.core.ids import ConversationId
    from clew.core.route import Route
    from clew.engine.engine import Engine


@dataclass(frozen=True, kw_only=True, slots=True)
class Chat:
    """The endpoint."""

    engine: Engine
    #: Names under which the agent is on offer; the first is the default.
    models: Sequence[str]
    #: The rule for a message that comes in mid turn, where the client chooses none.
    double_text: str
    #: Set when the server stops and waits for no turn any more.
    leaving: asyncio.Event
    pace: Pace = PACE

    async def complete(self, request: Request, query: Nothing, body: ChatRequest) -> Response:
        order = order_of(body, request.headers, models=self.models, double_text=self.double_text)
        key = key_of(request)
        placed = await self.engine.requests.submit(
            order.text,
            target=self._target(request, order),
            double_text=order.double_text,
            key=key,
        )
        asking = Asking(orders=self.engine.requests, order=order, accepted=placed.accepted, key=key)
        if placed.answer is not None:
            return _again(asking, placed.answer)
        events = self.engine.requests.stream_events(placed.accepted, live=order.stream)
        ear = Ear(events, request.receive, self.leaving)
        return ChatStream(asking, ear, self.pace) if order.stream else await _plain(asking, ear)

    def _target(self, request: Request, order: ChatOrder) -> Route | ConversationId | ClientHistory:
        if order.conversation is None:
            return ClientHistory(caller=caller_of(request), messages=order.history)
        return self.engine.parse_target(order.conversation)


async def _plain(asking: Asking, ear: Ear[ConversationEvent | InputCompleted]) -> Response:
    try:
        async with ear:
            end = await _end(ear)
        if isinstance(end, InputCompleted):
            return (await asking.answer(end)).plain
    except ClewError as error:
        raise asking.broken(error) from error
    return await asking.gone() if end is Heard.GONE else asking.stopping.response()


async def _end(ear: Ear[ConversationEvent | InputCompleted]) -> InputCompleted | Heard:
    while True:
        heard = await ear.hear()
        if isinstance(heard, (InputCompleted, Heard)):
            return heard


def _again(asking: Asking, kept: str) -> Response:
    """The answer that the first request with this key got."""
    answer = Answer.kept(asking.completion, kept)
    if not asking.order.stream or not isinstance(answer.said, str):
        return answer.plain
    chunks = answer.chunks(with_usage=asking.order.with_usage)
    return EventStream(sent(chunks), headers=answer.place.headers)
