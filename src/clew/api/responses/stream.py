"""Response as a stream of events, from any event on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.api import outcome_mapping, sse
from clew.api.pending_completion import problem_after_storing
from clew.api.responses.event_numbering import EventNumbering
from clew.api.responses.ids import output_id
from clew.api.responses.resource import build_response, item_id, list_texts
from clew.api.sse import EventStreamResponse, InterruptibleReader, Interruption
from clew.core.events import Delta, DeltaKind, EntryAppended, InputCompleted, Retracted, Snapshot
from clew.errors import ClewError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.responses import Response

    from clew.api.http_call import HttpCall
    from clew.api.problems import Problem
    from clew.api.responses.event_numbering import Event
    from clew.core.events import ConversationEvent
    from clew.engine.response_service import ResponseRecord

_END_REASONS = (Interruption.DISCONNECTED, Interruption.SHUTTING_DOWN)


def stream_response(call: HttpCall, record: ResponseRecord, *, after: int = -1) -> Response:
    """Return the events of a response above ``after``, those stored and those to come."""
    return EventStreamResponse(ResponseStream(call, record, after=after).iter_frames())


class ResponseStream:
    """
    The stream of one response.

    What is stored is read from the store; live pieces come in between, and any that the
    store has overtaken are dropped. A stream that cannot go on as it began ends with an
    error: the response is read anew.
    """

    def __init__(self, call: HttpCall, record: ResponseRecord, *, after: int) -> None:
        self._call, self._record = call, record
        self._events = EventNumbering(after=after)
        #: The seq up to which the entries of the turn are known, and that of the last text.
        self._known, self._last_text = 0, 0

    async def iter_frames(self) -> AsyncGenerator[bytes]:
        """Yield the events as bytes."""
        events = self._call.engine.stream_input(self._record.item.as_accepted())
        ear = InterruptibleReader(
            events, self._call.request.receive, self._call.server.leaving.stop
        )
        try:
            async with ear:
                for event in self._events.begin(self._build_response()):
                    yield _encode(event)
                async for event in self._iter_events(ear):
                    yield event
        except ClewError as error:
            yield self._encode_problem(problem_after_storing(error, again=False).problem)

    async def _iter_events(
        self, ear: InterruptibleReader[ConversationEvent | InputCompleted]
    ) -> AsyncGenerator[bytes]:
        keep_alive = self._call.server.timeouts.keep_alive
        while (heard := await ear.next_event(keep_alive)) not in _END_REASONS:
            if isinstance(heard, Interruption):
                yield sse.KEEP_ALIVE_COMMENT
                continue
            found = await self._read_events(heard)
            if found is None:
                yield self._encode_problem(outcome_mapping.retracted_problem("the text changed"))
                return
            for event in found:
                yield _encode(event)
            if isinstance(heard, InputCompleted):
                yield sse.DONE_CHUNK
                return

    async def _read_events(self, heard: ConversationEvent | InputCompleted) -> list[Event] | None:
        """Return the events for what was heard; ``None`` if it contradicts what was sent."""
        match heard:
            case InputCompleted():
                return await self._finish()
            case EntryAppended(entry=entry):
                return await self._sync(entry.seq)
            case Retracted(after=after) if after >= self._last_text and self._events.has_open_item:
                return None
            case Delta(kind=DeltaKind.TEXT) | Snapshot():
                return await self._add_text(heard)
            case _:
                return []

    async def _add_text(self, heard: Delta | Snapshot) -> list[Event] | None:
        stored = await self._sync(heard.after)
        if stored is None or heard.after < self._last_text:
            return stored
        id = output_id(heard.turn, self._events.position)
        add = self._events.add_piece if isinstance(heard, Delta) else self._events.add_snapshot
        return [*stored, *add(id, heard.text)]

    async def _sync(self, seq: int) -> list[Event] | None:
        """Return the events of the texts that are stored, if there may be some up to ``seq``."""
        if seq <= self._known:
            return []
        self._known = seq
        self._record = await self._call.engine.responses.read(self._record.item.id)
        found: list[Event] = []
        for at, text in self._record.texts[self._events.position :]:
            done = self._events.finish_item(self._next_id(), text)
            if done is None:
                return None
            self._known, self._last_text = max(self._known, at), at
            found += done
        return found

    async def _finish(self) -> list[Event] | None:
        """Return the events of everything that was not sent yet."""
        self._record = await self._call.engine.responses.read(self._record.item.id)
        found: list[Event] = []
        for text in list_texts(self._record)[self._events.position :]:
            done = self._events.finish_item(self._next_id(), text)
            if done is None:
                return None
            found += done
        return [*found, *self._events.finish(self._build_response())]

    def _next_id(self) -> str:
        return item_id(self._record, self._events.position)

    def _build_response(self) -> Event:
        return build_response(self._record, models=tuple(self._call.server.models))

    def _encode_problem(self, problem: Problem) -> bytes:
        return _encode(self._events.fail(code=problem.code, message=problem.message))


def _encode(event: Event) -> bytes:
    return sse.encode_event(event["type"], event)
