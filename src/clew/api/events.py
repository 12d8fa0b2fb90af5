"""``GET /api/conversations/{id}/events``: a conversation's events as a live stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from clew.api import sse
from clew.api.problems import invalid_request
from clew.api.sse import EventStreamResponse, InterruptibleReader, Interruption
from clew.core.events import EntryAppended
from clew.errors import NotFound, StoreError
from clew.wire.event_serializer import serialize_event

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request
    from starlette.responses import Response

    from clew.api.http_call import HttpCall
    from clew.api.schemas import EmptyInput, EventsQueryParams
    from clew.core.events import ConversationEvent

log = structlog.get_logger(__name__)

#: Milliseconds after which a disconnected client should reconnect.
_RETRY_FIELD = b"retry: 1000\n\n"
LAST_EVENT_ID = "last-event-id"
_END_REASONS = (Interruption.DISCONNECTED, Interruption.SHUTTING_DOWN)


async def stream_events(call: HttpCall, query: EventsQueryParams, body: EmptyInput) -> Response:
    after = _start_after(call.request, query)
    events = call.engine.stream_events(call.conversation, after=after)
    ear = InterruptibleReader(events, call.request.receive, call.server.leaving.drain)
    return EventStreamResponse(_iter_frames(call, ear))


async def _iter_frames(
    call: HttpCall, ear: InterruptibleReader[ConversationEvent]
) -> AsyncGenerator[bytes]:
    conversation, keep_alive = call.conversation, call.server.timeouts.keep_alive
    yield _RETRY_FIELD
    try:
        async with ear:
            while (heard := await ear.next_event(keep_alive)) not in _END_REASONS:
                yield await _encode_event(call, heard)
    except NotFound:
        yield sse.encode_event("deleted", {"conversation": conversation})
    except StoreError as error:
        # The client reconnects from the last id that it has.
        log.warning("events_broken_off", conversation=conversation, error=str(error))


async def _encode_event(call: HttpCall, heard: ConversationEvent | Interruption) -> bytes:
    if isinstance(heard, Interruption):
        # A deletion by another process causes no event.
        await call.engine.resolve_name(call.conversation)
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
