"""Deliveries, as whoever sends them and whoever looks after them needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.delivery import DeliveryState
from clew.core.route import RouteKey
from clew.store.transactions import backlog, deliveries, holds, previews
from clew.store.transactions.deliveries import ClaimedDelivery
from clew.store.transactions.previews import AnswerPreview

__all__ = ["AnswerPreview", "ClaimedDelivery", "DeadLetters", "Deliveries"]

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from clew.core.chat import OutboundMessage
    from clew.core.delivery import Chunk, Delivery
    from clew.core.ids import ConversationId, DeliveryId, IdGenerator, OwnerId, TurnId
    from clew.core.people import ChannelAccount
    from clew.store.contract import Store
    from clew.store.transactions.backlog import DeliveryBacklog, PlatformAccount

#: What is not done: on its way, or given up.
OPEN = (DeliveryState.PENDING, DeliveryState.SENDING, DeliveryState.UNKNOWN)
GIVEN_UP = (DeliveryState.FAILED,)


class DeadLetters:
    """Deliveries that did not arrive; needs no owner."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(
        self, states: Sequence[DeliveryState] = GIVEN_UP, *, limit: int = 200
    ) -> Sequence[tuple[Delivery, int]]:
        """The newest first, each with the time (ms) of its last change."""
        return await self._store.read(deliveries.list_dead_letters, states, limit=limit)

    async def backlogs(self) -> Mapping[PlatformAccount, DeliveryBacklog]:
        """What waits to be delivered, by account."""
        return await self._store.read(backlog.backlogs_by_account)

    async def retry(self, delivery: DeliveryId) -> Delivery:
        """
        Send once more what was given up; what was delivered of it stays delivered.

        :raises NotFound: if there is no such delivery
        :raises WrongMove: if it was not given up
        """
        return await self._store.write(deliveries.retry_delivery, delivery)

    async def drop(self, delivery: DeliveryId, *, why: str) -> Delivery:
        """
        Give up a delivery that was not made.

        :raises NotFound: if there is no such delivery
        :raises WrongMove: if it was made
        """
        return await self._store.write(deliveries.drop_delivery, delivery, why=why)


class Deliveries(DeadLetters):
    """What one process sends."""

    def __init__(self, store: Store, ids: IdGenerator, owner: OwnerId) -> None:
        super().__init__(store)
        self._ids, self._owner = ids, owner

    async def news(self) -> AsyncGenerator[frozenset[RouteKey] | None]:
        """Routes with something new to send; ``None``, which comes first: look at all. Endless."""
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

    async def undelivered(self) -> Sequence[RouteKey]:
        """Routes with something that is to be sent, in the order of what comes first."""
        return await self._store.read(deliveries.list_undelivered_routes)

    async def claim(self, routes: Sequence[RouteKey]) -> ClaimedDelivery | None:
        """
        The first delivery of a chat's routes, now ours to send; ``None`` if there is none now.

        In the state ``unknown`` it, or its part in that state, may have been sent before.
        """
        return await self._store.write(
            deliveries.claim_chat_delivery,
            routes,
            owner=self._owner,
            claim=self._ids.new_operation_id(),
        )

    async def fix(
        self, delivery: DeliveryId, bodies: Sequence[str], *, preview: TurnId | None = None
    ) -> Sequence[Chunk]:
        """Fix the parts before the first is sent; the first may take a turn's preview's place."""
        return await self._store.write(
            deliveries.store_chunks_over_preview, delivery, bodies, preview=preview
        )

    async def begin(self, delivery: DeliveryId, position: int, *, repeated: bool = False) -> Chunk:
        """
        Mark a part as being sent, before it is.

        :raises NotFound: if it was deleted meanwhile
        :raises WrongMove: if it was given up meanwhile
        """
        return await self._store.write(
            deliveries.start_chunk, delivery, position, owner=self._owner, repeated=repeated
        )

    async def end(self, delivery: DeliveryId, position: int, message: str) -> DeliveryState:
        """The platform has a part, as ``message``; the state of the delivery then."""
        return await self._store.write(
            deliveries.complete_chunk, delivery, position, message, owner=self._owner
        )

    async def close(self, delivery: DeliveryId) -> DeliveryState:
        """A delivery of which nothing is left to send is done; its state then."""
        return await self._store.write(deliveries.complete_if_sent, delivery, owner=self._owner)

    async def rechunk(self, delivery: DeliveryId, position: int, body: str) -> None:
        """Put another form of the same text in the place of a part that was refused."""
        await self._store.write(deliveries.replace_chunk_body, delivery, position, body)

    async def move(
        self, delivery: DeliveryId, state: DeliveryState, *, error: str | None = None
    ) -> None:
        """
        The part under way was not sent (``pending``), may have been (``unknown``), or never can be
        (``failed``).

        :raises NotFound: if it was deleted meanwhile
        :raises WrongMove: if it was given up meanwhile
        """
        await self._store.write(
            deliveries.stop_sending, delivery, state, owner=self._owner, error=error
        )

    async def tell(
        self,
        conversation: ConversationId,
        route: RouteKey,
        message: OutboundMessage,
        *,
        id: DeliveryId,
    ) -> None:
        """Have a message delivered; repeating it with the same id changes nothing."""
        await self._store.write(
            deliveries.deliver_to_chat,
            conversation,
            route,
            message,
            id=id,
            kind=deliveries.DeliveryKind.NOTICE,
        )

    async def hold(self, account: ChannelAccount, chat: str, *, until: int) -> None:
        """Keep, over restarts, that a chat is called not before ``until`` (ms); "" is every one."""
        await self._store.write(holds.pause_until, account, chat, until=until)

    async def holds(self, account: ChannelAccount, *, after: int) -> Mapping[str, int]:
        """The chats that are held beyond ``after`` (ms), each with its end."""
        await self._store.write(holds.delete_expired_pauses, account, before=after)
        return await self._store.read(holds.list_pauses, account, after=after)

    async def begin_preview(self, route: RouteKey, turn: TurnId, key: str) -> bool:
        """Remember, before it is sent, a message that shows an answer; whether it may be sent."""
        return await self._store.write(previews.begin_preview, route, turn, key)

    async def keep_preview(self, route: RouteKey, turn: TurnId, message: str) -> None:
        """Remember, over restarts, the message in which an answer is shown."""
        await self._store.write(previews.set_preview_message, route, turn, message)

    async def preview(self, route: RouteKey) -> AnswerPreview | None:
        """The message in which an answer is shown now, if any."""
        return await self._store.read(previews.find_preview, route)

    async def drop_preview(self, route: RouteKey, turn: TurnId) -> None:
        """That message was certainly not sent."""
        await self._store.write(previews.delete_preview, route, turn)
