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
from clew.core.events import Delta, DeltaKind, EntryAppended, InputCompleted, Retracted, Snapshot
from clew.errors import ClewError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Receive, Scope, Send

    from clew.api.answers import Answer
    from clew.api.asking import Asking
    from clew.api.pace import Pace
    from clew.api.sse import Ear
    from clew.core.events import ConversationEvent


class ChatStream(Response):
    """
    Begins with the first words, or after a while; a failure before that has a status of its own.

    Ends with ``[DONE]``, or with an error chunk where the text that went out is not the answer.
    """

    def __init__(
        self, asking: Asking, ear: Ear[ConversationEvent | InputCompleted], pace: Pace
    ) -> None:
        super().__init__()
        self._asking, self._ear, self._pace = asking, ear, pace
        self._completion, self._with_usage = asking.completion, asking.order.with_usage
        self._speech = Speech()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._ear:
            try:
                response = await self._response()
            except ClewError as error:
                response = self._asking.broken(error).problem.response()
            await response(scope, receive, send)

    async def _response(self) -> Response:
        first = await self._first_words()
        if first is Heard.GONE:
            return await self._asking.gone()
        if first is Heard.LEAVING:
            return self._asking.stopping.response()
        if isinstance(first, InputCompleted):
            place, problem = Place.of(first), endings.said(first)
            if isinstance(problem, Problem):
                return (await self._asking.answer(first)).plain
        else:
            place = await self._asking.place()
        return EventStream(self._chunks(first), headers=place.headers)

    async def _first_words(self) -> ConversationEvent | InputCompleted | Heard:
        """The first thing that there is something to say about."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._pace.first_words
        while True:
            heard = await self._ear.hear(max(deadline - loop.time(), 0))
            if isinstance(heard, (InputCompleted, Heard)) or _text(heard):
                return heard

    async def _chunks(
        self, heard: ConversationEvent | InputCompleted | Heard
    ) -> AsyncGenerator[bytes]:
        yield self._completion.begin(with_usage=self._with_usage)
        try:
            while heard is not Heard.GONE:
                chunk, last = await self._chunk(heard)
                if chunk:
                    yield chunk
                if last:
                    return
                heard = await self._ear.hear(self._pace.silence)
        except ClewError as error:
            yield error_chunk(self._asking.broken(error).problem)
        else:
            await self._asking.gone()

    async def _chunk(self, heard: ConversationEvent | InputCompleted | Heard) -> tuple[bytes, bool]:
        """What to send for what was heard, maybe nothing, and whether the stream ends with it."""
        if heard is Heard.SILENCE:
            return sse.COMMENT, False
        answer = await self._asking.answer(heard) if isinstance(heard, InputCompleted) else None
        said = self._said(heard, answer)
        if isinstance(said, Problem):
            return error_chunk(said), True
        piece = self._completion.piece(said, with_usage=self._with_usage) if said else b""
        if answer is None:
            return piece, False
        return piece + self._completion.end(
            answer.used, answer.place, with_usage=self._with_usage
        ), True

    def _said(
        self, heard: ConversationEvent | InputCompleted | Heard, answer: Answer | None
    ) -> str | Problem:
        """The text to send, or why the stream has to end here without the whole answer."""
        if answer is not None:
            said = answer.said
            return said if isinstance(said, Problem) else self._confirmed(said)
        match heard:
            case Heard.LEAVING:
                return self._asking.stopping
            case Retracted(reason=reason) if self._speech.open:
                return endings.retracted(reason)
            case EntryAppended() if text := _text(heard):
                return self._confirmed(text)
            case Delta() | Snapshot() if text := _text(heard):
                return self._speech.add(text)
            case _:
                return ""

    def _confirmed(self, text: str) -> str | Problem:
        missing = self._speech.confirm(text)
        return endings.INCOMPLETE if missing is None else missing


def _text(event: ConversationEvent) -> str:
    """The text of the answer that an event brings."""
    match event:
        case Delta(kind=DeltaKind.TEXT, text=text) | Snapshot(text=text):
            return text
        case EntryAppended(entry=entry) if (
            entry.kind is EntryKind.MESSAGE and entry.role is Role.ASSISTANT
        ):
            return entry.text
        case _:
            return ""
