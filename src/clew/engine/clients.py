"""Clients: programs through which a person looks at a conversation, attached until they close."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.store.transactions import clients, conversations, resets

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.core.ids import ClientId, ConversationId, OwnerId, SessionId, SessionIdFactory
    from clew.core.route import Route
    from clew.engine.turns import Means
    from clew.store.contract import Tx


@dataclass(frozen=True, kw_only=True, slots=True)
class Attached:
    """A client with what it is attached to."""

    client: ClientId
    conversation: ConversationId
    session: SessionId


class Clients:
    """Attaches and closes the clients of this process."""

    def __init__(
        self, means: Means, owner: OwnerId, kick: Callable[[ConversationId], None]
    ) -> None:
        self._store, self._ids, self._session_ids = means.store, means.ids, means.session_ids
        self._owner, self._kick = owner, kick

    async def attach(
        self, target: Route | ConversationId, *, front: str, client: ClientId | None = None
    ) -> Attached:
        """
        Attach a client, or move one that is attached; a route that is new gets a conversation.

        :raises NotFound: if the target is an id of nothing
        """
        return await self._store.write(
            _attach,
            target,
            client=client or self._ids.new_client_id(),
            owner=self._owner,
            front=front,
            new_conversation=self._ids.new_conversation_id(),
            session_ids=self._session_ids,
        )

    async def leave(self, client: ClientId) -> None:
        """
        A client is gone without a word, as when its connection broke: it only detaches.

        It may come back at once, and the session should be there as it was.
        """
        await self._store.write(clients.detach_client, client)

    async def close(self, client: ClientId) -> bool:
        """
        Detach a client, and end the conversation's session if it was the last one there.

        Where another client is attached, or a channel leads to the conversation, it only detaches.
        The session ends in the conversation's line: after a running turn, and not at all if a
        client has attached by then. The next message reopens the conversation.

        :return: whether the end of the session was filed
        """
        conversation = await self._store.write(
            resets.close_client, client, item=self._ids.new_inbox_id()
        )
        if conversation is None:
            return False
        self._kick(conversation)
        return True


def _attach(
    t: Tx,
    target: Route | ConversationId,
    *,
    client: ClientId,
    owner: OwnerId,
    front: str,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
) -> Attached:
    if isinstance(target, str):
        conversation = conversations.resolve_conversation(t, target)
    else:
        conversation = conversations.open_route(
            t, target, new_conversation=new_conversation, session_ids=session_ids
        )
    clients.attach_client(t, client, conversation, owner=owner, front=front)
    head = conversations.get_conversation(t, conversation).head
    return Attached(client=client, conversation=conversation, session=head)
