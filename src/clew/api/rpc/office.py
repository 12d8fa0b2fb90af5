"""What the methods work with, and what they know of the client that calls them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.core.scope import LOCAL, can_see, scope_of
from clew.distribution import VERSION
from clew.errors import NotFound
from clew.wire import shapes
from clew.wire.records import ConversationShape, StateShape

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from clew.config import Settings
    from clew.core.ids import ClientId, ConversationId
    from clew.core.route import Route
    from clew.core.scope import Scope
    from clew.core.standing import ConversationState
    from clew.engine.engine import Engine
    from clew.engine.records import ConversationView

#: What this front is called in the store.
FRONT = "rpc"


@dataclass(frozen=True, kw_only=True, slots=True)
class Office:
    """What is the same for all clients."""

    engine: Engine
    settings: Settings
    #: Whose conversations can be seen here.
    viewer: Scope = LOCAL
    #: Keys of messages are this caller's own.
    caller: str = ""
    #: Whether who is connected is known to be the person whose settings these are.
    may_configure: bool = False

    @property
    def version(self) -> str:
        return VERSION

    async def resolve(self, name: str) -> ConversationId:
        """:raises NotFound: if the name means nothing that may be seen here"""
        return await self.engine.resolve_name(name, viewer=self.viewer)

    def check(self, route: Route) -> None:
        """:raises NotFound: if what the route leads to may not be seen here"""
        if not can_see(self.viewer, scope_of(route)):
            raise NotFound("conversation", route.key)

    async def shown(self, conversation: ConversationId) -> ConversationShape:
        return shape_of(await self.engine.get_view(conversation, viewer=self.viewer))

    async def state(self, conversation: ConversationId) -> StateShape:
        standing = await self.engine.get_state(conversation, viewer=self.viewer)
        return StateShape.model_validate(self.told(standing))

    def told(self, standing: ConversationState) -> Mapping[str, object]:
        """Where a conversation stands, as JSON."""
        return shapes.serialize_state(standing, model=self.engine.model_overrides.offered[0])


def shape_of(view: ConversationView) -> ConversationShape:
    """A conversation as clients get it."""
    shape = shapes.serialize_conversation(
        view.conversation, routes=view.routes, sessions=view.sessions, counts=view.counts
    )
    return ConversationShape.model_validate(shape)


class Lane:
    """
    The order of one client's requests: what it asks first is stored first.

    Each waits for those before it until they are done, or let others pass because they only wait.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def enter(self) -> Callable[[], None]:
        """Wait for one's turn; calling what is returned, once or more, lets others pass."""
        await self._lock.acquire()
        left = False

        def leave() -> None:
            nonlocal left
            if not left:
                left = True
                self._lock.release()

        return leave


@dataclass(kw_only=True, slots=True)
class Client:
    """One client, from its connecting to its going."""

    office: Office
    #: Sends a frame; waits while the client does not read.
    send: Callable[[str], Awaitable[None]]
    #: As what it is attached to the conversations that it has opened.
    attached: dict[ConversationId, ClientId] = field(default_factory=dict)
    subscriptions: dict[ConversationId, asyncio.Task[None]] = field(default_factory=dict)
    tasks: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)

    async def attach(self, conversation: ConversationId) -> ClientId:
        """This client looks at a conversation now."""
        engine = self.office.engine
        done = await engine.clients.attach(
            conversation, front=FRONT, client=self.attached.get(conversation)
        )
        self.attached[conversation] = done.client
        engine.wake_conversation(conversation)
        return done.client

    def unsubscribe(self, conversation: ConversationId) -> bool:
        """Tell this client no more of a conversation; whether it was told."""
        task = self.subscriptions.pop(conversation, None)
        if task is None:
            return False
        task.cancel()
        return True

    async def gone(self) -> None:
        """The connection is over."""
        for client in self.attached.values():
            await self.office.engine.clients.detach(client)


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One request while it is carried out."""

    client: Client
    #: Lets requests of this client that came later pass: this one only waits from here on.
    let_pass: Callable[[], None]
    #: What is to be done once it was answered.
    then: list[Callable[[], None]] = field(default_factory=list)

    @property
    def office(self) -> Office:
        return self.client.office

    @property
    def engine(self) -> Engine:
        return self.client.office.engine
