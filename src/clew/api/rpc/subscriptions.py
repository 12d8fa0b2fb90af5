"""Subscriptions: a conversation's events, sent to one client at its own pace."""

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
from clew.wire.event_serializer import serialize_event
from clew.wire.framing import write_event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clew.api.rpc.client import ConnectedClient
    from clew.core.events import ConversationEvent
    from clew.core.ids import ConversationId, SessionId

log = structlog.get_logger(__name__)


class ClientDisconnected(Exception):
    """The client has disconnected: nothing more can be sent."""


async def start_subscription(
    client: ConnectedClient,
    conversation: ConversationId,
    *,
    after: int,
    live: bool,
    session: SessionId,
) -> Callable[[], None]:
    """
    Start to collect events; call the returned function to start sending them.

    So a client that gets its response in between misses no event.
    """
    telling = _Subscription(client, conversation, after=after, live=live, session=session)
    client.unsubscribe(conversation)
    client.subscriptions[conversation] = client.tasks.create_task(
        telling.run(), name=f"events:{conversation}"
    )
    # A new task runs until it first waits for the store; by then it has subscribed to the bus.
    await asyncio.sleep(0)
    return telling.start_sending


class _Subscription:
    """
    One subscription.

    The next event is taken when the last one was sent. Meanwhile events wait in the bounded
    queue of the event bus; what does not fit there is read from the log later. So the
    client's pace never slows anything else down.
    """

    def __init__(
        self,
        client: ConnectedClient,
        conversation: ConversationId,
        *,
        after: int,
        live: bool,
        session: SessionId,
    ) -> None:
        self._client, self._conversation, self._live = client, conversation, live
        #: The last entry sent, and the session of the last event sent.
        self._seq, self._session = after, session
        self._confirmed = asyncio.Event()

    def start_sending(self) -> None:
        """Start sending: the client knows that it has subscribed."""
        self._confirmed.set()

    async def run(self) -> None:
        with suppress(ClientDisconnected):
            try:
                await self._stream_events()
            except NotFound:
                await self._send_notification("deleted", {})
            except StoreError as error:
                log.warning("events_broken_off", conversation=self._conversation, error=str(error))
                await self._send_notification("ended", {"reason": str(error)})
            except Exception:  # a bug of ours: the subscriber learns that its events ended
                log.exception("events_failed", conversation=self._conversation)
                await self._send_notification(
                    "ended", {"reason": "something went wrong inside Clew"}
                )

    async def _stream_events(self) -> None:
        events = self._client.context.engine.stream_events(
            self._conversation, after=self._seq, live=self._live, with_standing=True
        )
        async with aclosing(events):
            async for happened in events:
                await self._send_event(happened)

    async def _send_event(self, happened: ConversationEvent) -> None:
        match happened:
            case EntryAppended(entry=entry):
                self._seq, self._session = entry.seq, entry.session_id
            case TurnStarted(session=session):
                self._session = session
            case ConversationStateChanged(standing=standing):
                self._session = standing.head
                await self._send_notification(
                    "state", {"state": self._client.context.state_json(standing)}
                )
                return
            case Delta() | Snapshot() | Retracted() if not self._live:
                return
            case _:
                pass
        name, data = serialize_event(happened)
        await self._send_notification(name, data)

    async def _send_notification(self, name: str, data: Mapping[str, object]) -> None:
        told = {
            **data,
            "conversation": self._conversation,
            "session": self._session,
            "seq": self._seq,
            "type": name,
        }
        await self._confirmed.wait()
        await self._client.send(write_event(told))
