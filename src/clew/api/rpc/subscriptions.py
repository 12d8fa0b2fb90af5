"""Subscriptions: a conversation's events, told to one client at the pace at which it reads."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

import structlog

from clew.core.events import (
    ConversationStateChanged,
    Delta,
    EntryAppended,
    Retracted,
    Snapshot,
    TurnStarted,
)
from clew.errors import NotFound, StoreError
from clew.wire.events import serialize_event
from clew.wire.framing import write_event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clew.api.rpc.office import Client
    from clew.core.events import ConversationEvent
    from clew.core.ids import ConversationId, SessionId

log = structlog.get_logger(__name__)


class ClientGone(Exception):
    """The connection of a client is over: nothing more can be sent."""


async def subscribed(
    client: Client,
    conversation: ConversationId,
    *,
    after: int,
    live: bool,
    session: SessionId,
) -> Callable[[], None]:
    """
    Listen from now on; what is returned has the client told of it.

    So whoever is answered in between misses nothing that happens from the answer on.
    """
    telling = _Telling(client, conversation, after=after, live=live, session=session)
    client.unsubscribe(conversation)
    client.subscriptions[conversation] = client.tasks.create_task(
        telling.run(), name=f"events:{conversation}"
    )
    # A new task runs up to its first wait, which is for the store: it has joined the hub by then.
    await asyncio.sleep(0)
    return telling.begin


class _Telling:
    """
    One subscription.

    The next event is taken when the last one was sent. Meanwhile they wait in the hub's bounded
    queue; what does not fit there is read from the log later. So nobody else ever waits.
    """

    def __init__(
        self,
        client: Client,
        conversation: ConversationId,
        *,
        after: int,
        live: bool,
        session: SessionId,
    ) -> None:
        self._client, self._conversation, self._live = client, conversation, live
        #: The last entry that was told, and the session of what was told last.
        self._seq, self._session = after, session
        self._begun = asyncio.Event()

    def begin(self) -> None:
        """The client knows that it has subscribed: from here on it is told."""
        self._begun.set()

    async def run(self) -> None:
        with suppress(ClientGone):
            try:
                await self._follow()
            except NotFound:
                await self._send("deleted", {})
            except StoreError as error:
                log.warning("events_broken_off", conversation=self._conversation, error=str(error))
                await self._send("ended", {"reason": str(error)})
            except Exception:
                log.exception("events_failed", conversation=self._conversation)
                await self._send("ended", {"reason": "something went wrong inside Clew"})

    async def _follow(self) -> None:
        events = self._client.office.engine.stream_events(
            self._conversation, after=self._seq, live=self._live, with_standing=True
        )
        async with aclosing(events):
            async for happened in events:
                await self._tell(happened)

    async def _tell(self, happened: ConversationEvent) -> None:
        match happened:
            case EntryAppended(entry=entry):
                self._seq, self._session = entry.seq, entry.session_id
            case TurnStarted(session=session):
                self._session = session
            case ConversationStateChanged(standing=standing):
                self._session = standing.head
                await self._send("state", {"state": self._client.office.told(standing)})
                return
            case Delta() | Snapshot() | Retracted() if not self._live:
                return
            case _:
                pass
        name, data = serialize_event(happened)
        await self._send(name, data)

    async def _send(self, name: str, data: Mapping[str, object]) -> None:
        told = {
            **data,
            "conversation": self._conversation,
            "session": self._session,
            "seq": self._seq,
            "type": name,
        }
        await self._begun.wait()
        await self._client.send(write_event(told))
