"""Model overrides: conversations that use another model than the configured one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from clew.engine.named_agents import NO_AGENTS, NamedAgents
from clew.errors import SettingsError
from clew.store.transactions import conversation_state, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.agent.failover import ModelChain
    from clew.agent.models import Model
    from clew.core.ids import ConversationId
    from clew.store.contract import Store

log = structlog.get_logger(__name__)


class ModelOverrides:
    """The models chosen for conversations; each model is built once per process."""

    def __init__(
        self,
        store: Store,
        *,
        offered: Sequence[str],
        make: Callable[[str], ModelChain],
        agents: NamedAgents = NO_AGENTS,
    ) -> None:
        self._store, self._build, self._agents = store, make, agents
        #: The configured models, the main one first.
        self.offered = tuple(offered)
        self._chains: dict[str, ModelChain] = {}

    async def get_model_name(self, conversation: ConversationId) -> str:
        """Return the name of the model that the conversation asks first."""
        return await self._read_choice(conversation) or self.offered[0]

    async def choose_model(self, conversation: ConversationId, name: str) -> None:
        """
        Use this model from the next turn on.

        :raises SettingsError: if there is no such model, or it cannot be used here
        """
        self._get_or_build_chain(name)
        before = await self.get_model_name(conversation)
        if name != before:
            await self._store.write(
                conversation_state.choose_model, conversation, name, before=before
            )

    async def get_model_chain(self, conversation: ConversationId) -> ModelChain | None:
        """Return the chosen model with its fallbacks; ``None`` without a usable choice."""
        name = await self._read_choice(conversation)
        if name is None or name == self.offered[0]:
            return None
        try:
            return self._get_or_build_chain(name)
        except SettingsError as error:
            log.warning("chosen_model_gone", conversation=conversation, error=str(error))
            return None

    def get_model(self, name: str) -> Model:
        """
        Return the model of this name, as if it had been chosen.

        :raises SettingsError: if there is no such model, or it cannot be used here
        """
        found = self._get_or_build_chain(name).find_by_name(None)
        assert found is not None
        return found

    async def _read_choice(self, conversation: ConversationId) -> str | None:
        chosen, agent = await self._store.read(settings.find_chosen_model, conversation)
        return chosen or self._agents.find_model(agent)

    def _get_or_build_chain(self, name: str) -> ModelChain:
        if name not in self._chains:
            self._chains[name] = self._build(name)
        return self._chains[name]
