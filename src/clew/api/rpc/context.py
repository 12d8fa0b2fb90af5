"""Context of the operations, their calls, and the state of a connected client."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.commands.builtin import BUILTIN_REGISTRY
from clew.core.route import Route
from clew.core.scope import LOCAL, can_see, scope_of
from clew.errors import NotFound
from clew.wire import serializers
from clew.wire.models import ConversationShape

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from clew.api.operations import Operations
    from clew.commands.registry import CommandRegistry
    from clew.config import Settings
    from clew.core.conversation_state import ConversationState
    from clew.core.ids import ClientId, ConversationId
    from clew.core.scope import Scope
    from clew.engine.engine import Engine
    from clew.engine.queries import ConversationView

#: The name of this front in the store.
FRONT_NAME = "rpc"


@dataclass(frozen=True, kw_only=True, slots=True)
class RpcContext:
    """The engine, settings and permissions with which methods run."""

    engine: Engine
    settings: Settings
    #: What a client can call.
    operations: Operations
    commands: CommandRegistry = BUILTIN_REGISTRY
    #: The scope whose conversations are visible.
    viewer: Scope = LOCAL
    #: The caller: each has its own idempotency keys.
    caller: str = ""
    #: The client is authenticated as the owner of the settings.
    may_configure: bool = False

    async def resolve_name(self, name: str) -> ConversationId:
        """
        Return the conversation of that name.

        :raises NotFound: if there is none that the viewer may see
        """
        return await self.engine.resolve_name(name, viewer=self.viewer)

    async def resolve_target(self, name: str) -> Route | ConversationId:
        """
        Return the conversation of an id, or the route of any other name.

        :raises NotFound: if the viewer may not see it
        """
        target = self.engine.parse_target(name)
        if not isinstance(target, Route):
            return await self.resolve_name(target)
        if not can_see(self.viewer, scope_of(target)):
            raise NotFound("conversation", target.key)
        return target

    async def show_conversation(self, conversation: ConversationId) -> ConversationShape:
        return conversation_model(await self.engine.get_view(conversation, viewer=self.viewer))

    def state_json(self, standing: ConversationState) -> Mapping[str, object]:
        """Return the state of a conversation as JSON."""
        return serializers.serialize_state(standing, model=self.engine.model_overrides.offered[0])


def conversation_model(view: ConversationView) -> ConversationShape:
    """Return a conversation as clients get it."""
    shape = serializers.serialize_conversation(
        view.conversation, routes=view.routes, sessions=view.sessions, counts=view.counts
    )
    return ConversationShape.model_validate(shape)


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

    context: RpcContext
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
