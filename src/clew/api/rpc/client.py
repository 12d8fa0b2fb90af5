"""A connected client: its conversations, and its requests in order."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.api.operation_call import OperationCall
from clew.engine.request_service import make_request_key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from clew.api.operation_context import OperationContext
    from clew.core.events import InputCompleted
    from clew.core.ids import ClientId, ConversationId
    from clew.core.inbox import AcceptResult
    from clew.engine.request_service import IdempotencyKey
    from clew.wire.params import SubmitParams

#: The name of this front in the store.
FRONT_NAME = "rpc"


class RequestOrder:
    """
    Order of one client's requests: what is requested first is stored first.

    Each waits for the ones before it until they are done, or only wait and let others pass.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def acquire(self) -> Callable[[], None]:
        """Wait for a place; the returned function, callable repeatedly, lets others pass."""
        await self._lock.acquire()
        left = False

        def release() -> None:
            nonlocal left
            if not left:
                left = True
                self._lock.release()

        return release


@dataclass(kw_only=True, slots=True)
class ConnectedClient:
    """The state of one connected client."""

    context: OperationContext
    #: Sends a frame; blocks while the client does not read.
    send: Callable[[str], Awaitable[None]]
    #: Its client id in each conversation that it has opened.
    attached: dict[ConversationId, ClientId] = field(default_factory=dict)
    subscriptions: dict[ConversationId, asyncio.Task[None]] = field(default_factory=dict)
    tasks: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)

    async def attach_to(self, conversation: ConversationId) -> ClientId:
        """Attach this client to a conversation."""
        engine = self.context.engine
        done = await engine.clients.attach(
            conversation, front=FRONT_NAME, client=self.attached.get(conversation)
        )
        self.attached[conversation] = done.client
        engine.wake_conversation(conversation)
        return done.client

    def unsubscribe(self, conversation: ConversationId) -> bool:
        """End the subscription to a conversation; return True if there was one."""
        task = self.subscriptions.pop(conversation, None)
        if task is None:
            return False
        task.cancel()
        return True

    async def disconnect(self) -> None:
        """Detach from all conversations when the connection is over."""
        for client in self.attached.values():
            await self.context.engine.clients.detach(client)


@dataclass(frozen=True, kw_only=True, slots=True)
class RpcCall(OperationCall):
    """One JSON-RPC request while it is processed."""

    client: ConnectedClient
    #: Callbacks to run after the response was sent.
    after_response: list[Callable[[], None]] = field(default_factory=list)

    def make_key(self, given: SubmitParams) -> IdempotencyKey | None:
        if given.key is None:
            return None
        # Without the target: a repeated request may name the same conversation in another way.
        meant = given.model_dump_json(exclude={"key", "session_id"})
        return make_request_key(
            caller=self.context.caller,
            path="prompt.submit",
            key=given.key,
            request=meant.encode(),
            holds_target=True,
        )

    async def wait_for_input(self, filed: AcceptResult) -> InputCompleted:
        return await self.engine.wait_for_input(filed)
