"""``GET /api/conversations/{id}/events``: what happens in a conversation, as it happens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from clew.api import sse
from clew.api.pace import PACE, Pace
from clew.api.problems import invalid
from clew.api.sse import Ear, EventStream, Heard
from clew.core.events import EntryAppended
from clew.errors import NotFound, StoreError
from clew.wire.events import serialize_event

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator

    from starlette.requests import Request
    from starlette.responses import Response

    from clew.api.conversations import Conversations
    from clew.api.schemas import EventsQuery, Nothing
    from clew.core.events import ConversationEvent
    from clew.core.ids import ConversationId
    from clew.engine.engine import Engine

log = structlog.get_logger(__name__)

#: Milliseconds after which a client that was cut off should come again.
_RETRY = b"retry: 1000\n\n"
LAST_ID = "last-event-id"
_ENDS = (Heard.GONE, Heard.LEAVING)


@dataclass(frozen=True, kw_only=True, slots=True)
class Events:
    """The endpoint."""

    engine: Engine
    conversations: Conversations
    #: Set when the server begins to stop.
    leaving: asyncio.Event
    pace: Pace = PACE

    async def follow(self, request: Request, query: EventsQuery, body: Nothing) -> Response:
        conversation = await self.conversations.named(request)
        events = self.engine.stream_events(conversation, after=_after(request, query))
        ear = Ear(events, request.receive, self.leaving)
        return EventStream(self._told(conversation, ear))

    async def _told(
        self, conversation: ConversationId, ear: Ear[ConversationEvent]
    ) -> AsyncGenerator[bytes]:
        yield _RETRY
        try:
            async with ear:
                while (heard := await ear.hear(self.pace.silence)) not in _ENDS:
                    yield await self._written(conversation, heard)
        except NotFound:
            yield sse.named("deleted", {"conversation": conversation})
        except StoreError as error:
            # The client comes again, from the last id that it has.
            log.warning("events_broken_off", conversation=conversation, error=str(error))

    async def _written(
        self, conversation: ConversationId, heard: ConversationEvent | Heard
    ) -> bytes:
        if isinstance(heard, Heard):
            # Nobody tells of a deletion by another process.
            await self.engine.resolve_name(conversation)
            return sse.COMMENT
        name, data = serialize_event(heard)
        seq = heard.entry.seq if isinstance(heard, EntryAppended) else None
        return sse.named(name, data, seq=seq)


def _after(request: Request, query: EventsQuery) -> int:
    """A client that comes again says where it was; its URL still says where it began."""
    last = request.headers.get(LAST_ID, "")
    if not last:
        return query.after
    if not (last.isascii() and last.isdigit() and len(last) <= 15):
        raise invalid(f"{LAST_ID} is the seq of an entry, not {last!r}", param=LAST_ID)
    return int(last)
