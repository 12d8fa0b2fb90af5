"""Clients: programs in which a person has a conversation open, attached until they close."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.record import Record
from clew.store.transactions import clients, conversations, resets

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.core.ids import ClientId, ConversationId, OwnerId, SessionId, SessionIdFactory
    from clew.core.route import Route
    from clew.engine.services import EngineServices
    from clew.store.contract import Tx


class AttachedClient(Record):
    """A client and what it is attached to."""

    client: ClientId
    conversation: ConversationId
    session: SessionId


class ClientRegistry:
    """The attached clients of this process."""

    def __init__(
        self, means: EngineServices, owner: OwnerId, kick: Callable[[ConversationId], None]
    ) -> None:
        self._store, self._ids, self._session_ids = means.store, means.ids, means.session_ids
        self._owner, self._wake = owner, kick

    async def attach(
        self, target: Route | ConversationId, *, front: str, client: ClientId | None = None
    ) -> AttachedClient:
        """
        Attach a client, or move an attached one; a new route gets a conversation.

        :raises NotFound: if the target is an unknown id
        """
        return await self._store.write(
            _attach_client,
            target,
            client=client or self._ids.new_client_id(),
            owner=self._owner,
            front=front,
            new_conversation=self._ids.new_conversation_id(),
            session_ids=self._session_ids,
        )

    async def detach(self, client: ClientId) -> None:
        """
        Detach a client that disconnected without closing.

        It may come back at once, so the session stays as it is.
        """
        await self._store.write(clients.detach_client, client)

    async def close(self, client: ClientId) -> bool:
        """
        Detach a client, and end the conversation's session if it was the last one there.

        If another client is attached, or a channel leads to the conversation, it only
        detaches. The session ends in the conversation's queue: after a running turn, and
        not at all if a client has attached by then. The next message reopens the
        conversation.

        :return: whether the end of the session was queued
        """
        conversation = await self._store.write(
            resets.close_client, client, item=self._ids.new_inbox_id()
        )
        if conversation is None:
            return False
        self._wake(conversation)
        return True


def _attach_client(
    t: Tx,
    target: Route | ConversationId,
    *,
    client: ClientId,
    owner: OwnerId,
    front: str,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
) -> AttachedClient:
    if isinstance(target, str):
        conversation = conversations.resolve_conversation(t, target)
    else:
        conversation = conversations.open_route(
            t, target, new_conversation=new_conversation, session_ids=session_ids
        )
    clients.attach_client(t, client, conversation, owner=owner, front=front)
    head = conversations.get_conversation(t, conversation).head
    return AttachedClient(client=client, conversation=conversation, session=head)
