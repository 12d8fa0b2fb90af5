"""A chat completion as a stream of chunks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.responses import Response

from clew.api import endings, sse
from clew.api.completion import Place, error_chunk
from clew.api.problems import Problem
from clew.api.speech import Speech
from clew.api.sse import EventStream, Heard
from clew.core.entry import EntryKind, Role
from clew.core.events import Delta, DeltaKind, EntryAppended, InputEnded, Retracted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Receive, Scope, Send

    from clew.api.chat_order import Order
    from clew.api.completion import Completion
    from clew.api.sse import Ear
    from clew.core.events import Event
    from clew.core.inbox import Accepted
    from clew.engine.engine import Engine

#: Seconds for which the status waits for the first words: a turn that fails before has its own.
FIRST_WORDS = 10.0


class ChatStream(Response):
    """
    Begins with the first words, or after a while; a failure before that has a status of its own.

    Ends with ``[DONE]``, or with an error chunk where the text that went out is not the answer.
    """

    def __init__(
        self,
        engine: Engine,
        ear: Ear[Event | InputEnded],
        accepted: Accepted,
        completion: Completion,
        order: Order,
    ) -> None:
        super().__init__()
        self._engine, self._ear, self._accepted = engine, ear, accepted
        self._completion, self._order = completion, order
        self._speech = Speech()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._ear:
            response = await self._response()
            await response(scope, receive, send)

    async def _response(self) -> Response:
        first = await self._first_words()
        match first:
            case Heard.GONE:
                return await self._gone()
            case Heard.LEAVING:
                return endings.stopping(again=False).response()
            case InputEnded():
                place = Place.of(first)
                if isinstance(problem := endings.answer_of(first), Problem):
                    return problem.response(place.headers)
            case _:
                place = await self._place()
        return EventStream(self._chunks(first), headers=place.headers)

    async def _first_words(self) -> Event | InputEnded | Heard:
        """The first thing that there is something to say about."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + FIRST_WORDS
        while True:
            heard = await self._ear.hear(max(deadline - loop.time(), 0))
            if isinstance(heard, (InputEnded, Heard)) or _text(heard):
                return heard

    async def _place(self) -> Place:
        begun = await self._engine.orders.begun(self._accepted.inbox_id)
        if begun is None:
            return Place(conversation=self._accepted.conversation_id)
        return Place(
            conversation=begun.turn.conversation_id, session=begun.session, turn=begun.turn.id
        )

    async def _chunks(self, heard: Event | InputEnded | Heard) -> AsyncGenerator[bytes]:
        with_usage = self._order.with_usage
        yield self._completion.begin(with_usage=with_usage)
        while True:
            if heard is Heard.SILENCE:
                yield sse.COMMENT
            elif heard is Heard.GONE:
                await self._gone()
                return
            else:
                answer = self._answer(heard)
                if isinstance(answer, Problem):
                    yield error_chunk(answer)
                    return
                if answer:
                    yield self._completion.piece(answer, with_usage=with_usage)
            if isinstance(heard, InputEnded):
                used = await self._engine.orders.used(heard.turn)
                yield self._completion.end(used, Place.of(heard), with_usage=with_usage)
                return
            heard = await self._ear.hear(sse.SILENCE)

    def _answer(self, heard: Event | InputEnded | Heard) -> str | Problem:
        """What to send for what was heard, maybe nothing, or why the stream has to end here."""
        match heard:
            case Heard.LEAVING:
                return endings.stopping(again=False)
            case Retracted(reason=reason) if self._speech.open:
                return endings.retracted(reason)
            case InputEnded():
                answer = endings.answer_of(heard)
                return answer if isinstance(answer, Problem) else self._confirmed(answer)
            case EntryAppended() if text := _text(heard):
                return self._confirmed(text)
            case Delta() if text := _text(heard):
                return self._speech.add(text)
            case _:
                return ""

    def _confirmed(self, text: str) -> str | Problem:
        missing = self._speech.confirm(text)
        return endings.INCOMPLETE if missing is None else missing

    async def _gone(self) -> Response:
        return Response(status_code=499)


def _text(event: Event) -> str:
    """The text of the answer that an event brings."""
    match event:
        case Delta(kind=DeltaKind.TEXT, text=text):
            return text
        case EntryAppended(entry=entry) if (
            entry.kind is EntryKind.MESSAGE and entry.role is Role.ASSISTANT
        ):
            return entry.text
        case _:
            return ""
