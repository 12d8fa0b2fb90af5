"""Deliveries: the queue for senders, and the management of failed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.delivery import DeliveryState
from clew.core.route import RouteKey
from clew.store.transactions import attachments, backlog, deliveries, platform_pauses, previews
from clew.store.transactions.deliveries import ClaimedDelivery
from clew.store.transactions.previews import AnswerPreview

__all__ = ["AnswerPreview", "ClaimedDelivery", "DeadLetters", "DeliveryQueue"]

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from clew.core.access import ChannelAccount
    from clew.core.channel_events import OutboundMessage
    from clew.core.delivery import Chunk, Delivery
    from clew.core.ids import DeliveryId, IdGenerator, OwnerId, TurnId
    from clew.store.contract import Store
    from clew.store.transactions.backlog import (
        DeliveryBacklog,
        DeliveryCounts,
        PlatformAccount,
    )

#: States of unfinished deliveries, and of failed ones.
OPEN_STATES = (DeliveryState.PENDING, DeliveryState.SENDING, DeliveryState.UNKNOWN)
FAILED_STATES = (DeliveryState.FAILED,)
#: Why a delivery has failed that an operator gave up.
DROPPED_BY_OPERATOR = "dropped by the operator"


class DeadLetters:
    """Deliveries that did not arrive; needs no owner."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list_deliveries(
        self,
        states: Sequence[DeliveryState] = FAILED_STATES,
        *,
        limit: int = 200,
        before: DeliveryId | None = None,
        channel: str | None = None,
    ) -> Sequence[tuple[Delivery, int]]:
        """
        Return the newest deliveries first, each with the time (ms) of its last change.

        ``before`` is the last delivery of the previous page, ``channel`` the NAME of one.

        :raises NotFound: if there is no delivery ``before``
        """
        return await self._store.read(
            deliveries.list_dead_letters, states, limit=limit, before=before, channel=channel
        )

    async def count_by_channel(self) -> Mapping[str, DeliveryCounts]:
        """Return the undelivered messages of each channel, by its NAME."""
        return await self._store.read(backlog.count_by_channel)

    async def read_backlogs(self) -> Mapping[PlatformAccount, DeliveryBacklog]:
        """Return the undelivered backlog of each account."""
        return await self._store.read(backlog.backlogs_by_account)

    async def retry_delivery(self, delivery: DeliveryId) -> Delivery:
        """
        Send a failed delivery again, without the parts that were delivered.

        :raises NotFound: if there is no such delivery
        :raises InvalidTransition: if it has not failed
        """
        return await self._store.write(deliveries.retry_delivery, delivery)

    async def drop_delivery(self, delivery: DeliveryId, *, why: str) -> Delivery:
        """
        Mark an undelivered delivery as failed.

        :raises NotFound: if there is no such delivery
        :raises InvalidTransition: if it was delivered
        """
        return await self._store.write(deliveries.drop_delivery, delivery, why=why)


class DeliveryQueue(DeadLetters):
    """The delivery queue as one process works on it."""

    def __init__(self, store: Store, ids: IdGenerator, owner: OwnerId) -> None:
        super().__init__(store)
        self._ids, self._owner = ids, owner

    async def watch_routes(self) -> AsyncGenerator[frozenset[RouteKey] | None]:
        """
        Yield routes with something new to send, without end.

        ``None``, which comes first, means that every route must be checked.
        """
        async for topics in self._store.watch_changes():
            if topics is None:
                yield None
                continue
            found = {
                RouteKey(topic.removeprefix(deliveries.DELIVERY_TOPIC))
                for topic in topics
                if topic.startswith(deliveries.DELIVERY_TOPIC)
            }
            if found:
                yield frozenset(found)

    async def list_undelivered_routes(self) -> Sequence[RouteKey]:
        """Return the routes with undelivered messages, the oldest first."""
        return await self._store.read(deliveries.list_undelivered_routes)

    async def claim_next(self, routes: Sequence[RouteKey]) -> ClaimedDelivery | None:
        """
        Claim the first delivery of a chat's routes; return ``None`` if there is none now.

        In the state ``unknown`` it, or its part in that state, may have been sent before.
        """
        return await self._store.write(
            deliveries.claim_chat_delivery,
            routes,
            owner=self._owner,
            claim=self._ids.new_operation_id(),
        )

    async def store_chunks(
        self, delivery: DeliveryId, bodies: Sequence[str], *, preview: TurnId | None = None
    ) -> Sequence[Chunk]:
        """Store the parts before the first is sent; it may replace the preview of a turn."""
        return await self._store.write(
            deliveries.store_chunks_over_preview, delivery, bodies, preview=preview
        )

    async def begin_chunk(
        self, delivery: DeliveryId, position: int, *, repeated: bool = False
    ) -> Chunk:
        """
        Mark a part as being sent, before it is sent.

        :raises NotFound: if the delivery was deleted meanwhile
        :raises InvalidTransition: if it was marked as failed meanwhile
        """
        return await self._store.write(
            deliveries.start_chunk, delivery, position, owner=self._owner, repeated=repeated
        )

    async def end_chunk(self, delivery: DeliveryId, position: int, message: str) -> DeliveryState:
        """Mark a part as sent as ``message``; return the state of the delivery."""
        return await self._store.write(
            deliveries.complete_chunk, delivery, position, message, owner=self._owner
        )

    async def close_if_done(self, delivery: DeliveryId) -> DeliveryState:
        """Finish a delivery with nothing left to send; return its state."""
        return await self._store.write(deliveries.complete_if_sent, delivery, owner=self._owner)

    async def read_file(self, attachment: str) -> bytes | None:
        """Return the content of a file; ``None`` if it is not kept any more."""
        return await self._store.read(attachments.read_content, attachment)

    async def replace_chunk(self, delivery: DeliveryId, position: int, body: str) -> None:
        """Replace a rejected part by another form of the same text."""
        await self._store.write(deliveries.replace_chunk_body, delivery, position, body)

    async def set_chunk_state(
        self, delivery: DeliveryId, state: DeliveryState, *, error: str | None = None
    ) -> None:
        """
        Set the state of the part that was being sent.

        It was not sent (``pending``), may have been sent (``unknown``) or never can be
        (``failed``).

        :raises NotFound: if the delivery was deleted meanwhile
        :raises InvalidTransition: if it was marked as failed meanwhile
        """
        await self._store.write(
            deliveries.stop_sending, delivery, state, owner=self._owner, error=error
        )

    async def replace_delivery(
        self, delivery: Delivery, notice: OutboundMessage, *, error: str
    ) -> None:
        """
        Give a delivery up, and deliver a notice in its place.

        :raises NotFound: if the delivery was deleted meanwhile
        :raises InvalidTransition: if it was marked as failed meanwhile
        """
        await self._store.write(
            deliveries.replace_delivery, delivery, notice, owner=self._owner, error=error
        )

    async def pause_chat(self, account: ChannelAccount, chat: str, *, until: int) -> None:
        """
        Store that nothing is sent to a chat before ``until`` (ms).

        An empty ``chat`` means every chat of the account.
        """
        await self._store.write(platform_pauses.pause_until, account, chat, until=until)

    async def list_pauses(self, account: ChannelAccount, *, after: int) -> Mapping[str, int]:
        """Return the chats that are paused beyond ``after`` (ms), each with its end."""
        await self._store.write(platform_pauses.delete_expired_pauses, account, before=after)
        return await self._store.read(platform_pauses.list_pauses, account, after=after)

    async def begin_preview(self, route: RouteKey, turn: TurnId, key: str) -> bool:
        """Record a preview message before it is sent; return whether it may be sent."""
        return await self._store.write(previews.begin_preview, route, turn, key)

    async def store_preview(self, route: RouteKey, turn: TurnId, message: str) -> None:
        """Store the message in which an answer is shown."""
        await self._store.write(previews.set_preview_message, route, turn, message)

    async def get_preview(self, route: RouteKey) -> AnswerPreview | None:
        """Return the message in which an answer is shown now, if any."""
        return await self._store.read(previews.find_preview, route)

    async def discard_preview(self, route: RouteKey, turn: TurnId) -> None:
        """Discard a preview message that was certainly not sent."""
        await self._store.write(previews.delete_preview, route, turn)
