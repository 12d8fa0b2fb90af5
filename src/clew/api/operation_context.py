"""Context of the operations: what they run with, and who calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.commands.builtin import BUILTIN_REGISTRY
from clew.core.route import Route
from clew.core.scope import LOCAL, can_see, scope_of
from clew.errors import NotFound
from clew.record import Record
from clew.wire import serializers
from clew.wire.models import ConversationShape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.api.operations import Operations
    from clew.commands.registry import CommandRegistry
    from clew.config import Settings
    from clew.core.conversation_state import ConversationState
    from clew.core.ids import ConversationId
    from clew.core.scope import Scope
    from clew.engine.engine import Engine
    from clew.engine.queries import ConversationView


class OperationContext(Record):
    """The engine, settings and permissions with which operations run."""

    engine: Engine
    settings: Settings
    #: The operations that a client can call.
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
        view.conversation,
        routes=view.routes,
        sessions=view.sessions,
        counts=view.counts,
        imported_from=view.imported_from,
    )
    return ConversationShape.model_validate(shape)
