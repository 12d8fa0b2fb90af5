"""``GET /api/conversations/{id}/events``: a conversation's events as a live stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from clew.api import sse
from clew.api.problems import invalid_request
from clew.api.sse import EventStreamResponse, InterruptibleReader, Interruption
from clew.api.timeouts import DEFAULT_TIMEOUTS, ApiTimeouts
from clew.core.events import EntryAppended
from clew.errors import NotFound, StoreError
from clew.wire.event_serializer import serialize_event

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator

    from starlette.requests import Request
    from starlette.responses import Response

    from clew.api.conversations import ConversationEndpoints
    from clew.api.schemas import EmptyInput, EventsQueryParams
    from clew.core.events import ConversationEvent
    from clew.core.ids import ConversationId
    from clew.engine.engine import Engine

log = structlog.get_logger(__name__)

#: Milliseconds after which a disconnected client should reconnect.
_RETRY_FIELD = b"retry: 1000\n\n"
LAST_EVENT_ID = "last-event-id"
_END_REASONS = (Interruption.DISCONNECTED, Interruption.SHUTTING_DOWN)


@dataclass(frozen=True, kw_only=True, slots=True)
class EventsEndpoint:
    """The event stream endpoint."""

    engine: Engine
    conversations: ConversationEndpoints
    #: Set when the server starts to stop.
    shutdown: asyncio.Event
    pace: ApiTimeouts = DEFAULT_TIMEOUTS

    async def stream_events(
        self, request: Request, query: EventsQueryParams, body: EmptyInput
    ) -> Response:
        conversation = await self.conversations.resolve_path(request)
        events = self.engine.stream_events(conversation, after=_start_after(request, query))
        ear = InterruptibleReader(events, request.receive, self.shutdown)
        return EventStreamResponse(self._iter_frames(conversation, ear))

    async def _iter_frames(
        self, conversation: ConversationId, ear: InterruptibleReader[ConversationEvent]
    ) -> AsyncGenerator[bytes]:
        yield _RETRY_FIELD
        try:
            async with ear:
                while (heard := await ear.next_event(self.pace.keep_alive)) not in _END_REASONS:
                    yield await self._encode_event(conversation, heard)
        except NotFound:
            yield sse.encode_event("deleted", {"conversation": conversation})
        except StoreError as error:
            # The client reconnects from the last id that it has.
            log.warning("events_broken_off", conversation=conversation, error=str(error))

    async def _encode_event(
        self, conversation: ConversationId, heard: ConversationEvent | Interruption
    ) -> bytes:
        if isinstance(heard, Interruption):
            # A deletion by another process causes no event.
            await self.engine.resolve_name(conversation)
            return sse.KEEP_ALIVE_COMMENT
        name, data = serialize_event(heard)
        seq = heard.entry.seq if isinstance(heard, EntryAppended) else None
        return sse.encode_event(name, data, seq=seq)


def _start_after(request: Request, query: EventsQueryParams) -> int:
    """Return the seq to start after: a reconnecting client's header overrides the URL."""
    last = request.headers.get(LAST_EVENT_ID, "")
    if not last:
        return query.after
    if not (last.isascii() and last.isdigit() and len(last) <= 15):
        raise invalid_request(
            f"{LAST_EVENT_ID} is the seq of an entry, not {last!r}", param=LAST_EVENT_ID
        )
    return int(last)
