"""``POST /v1/chat/completions``: one turn of a stored conversation, plain or as a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

from clew.api import endings
from clew.api.body import checked, parse, read_body
from clew.api.chat_order import order_of
from clew.api.chat_stream import ChatStream
from clew.api.completion import Completion, Place
from clew.api.problems import Problem
from clew.api.schemas import ChatRequest
from clew.api.sse import Ear, Heard
from clew.core.events import InputEnded

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from starlette.requests import Request

    from clew.api.chat_order import Order
    from clew.core.events import Event
    from clew.core.inbox import Accepted
    from clew.engine.engine import Engine

#: The client has closed the connection: nobody reads this status.
_GONE = 499


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

    async def complete(self, request: Request) -> Response:
        body = checked(parse(await read_body(request)), ChatRequest)
        order = order_of(body, request.headers, models=self.models, double_text=self.double_text)
        accepted = await self.engine.submit(
            order.text,
            target=self.engine.target("main" if order.conversation is None else order.conversation),
            double_text=order.double_text,
        )
        return await self._respond(request, order, accepted)

    async def _respond(self, request: Request, order: Order, accepted: Accepted) -> Response:
        completion = Completion(inbox_id=accepted.inbox_id, model=order.model)
        events = self.engine.follow_input(accepted)
        if order.stream:
            ear = Ear(events, request.receive, self.leaving)
            return ChatStream(self.engine, ear, accepted, completion, order)
        async with Ear(events, request.receive, self.leaving) as ear:
            end = await _end(ear)
        if isinstance(end, InputEnded):
            return await self._plain(completion, end)
        if end is Heard.GONE:
            return Response(status_code=_GONE)
        return endings.stopping(again=False).response()

    async def _plain(self, completion: Completion, end: InputEnded) -> Response:
        answer, place = endings.answer_of(end), Place.of(end)
        if isinstance(answer, Problem):
            return answer.response(place.headers)
        used = await self.engine.orders.used(end.turn)
        return JSONResponse(completion.whole(answer, used, place), headers=place.headers)


async def _end(ear: Ear[Event | InputEnded]) -> InputEnded | Heard:
    while True:
        heard = await ear.hear()
        if isinstance(heard, (InputEnded, Heard)):
            return heard
