"""The model of a conversation, where a person chose another one than the settings name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import structlog

from clew.errors import SettingsError
from clew.store.transactions import settings, standing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.agent.choice import ModelChain
    from clew.agent.models import Model
    from clew.core.ids import ConversationId
    from clew.store.contract import Store

log = structlog.get_logger(__name__)


class ModelChoice:
    """Remembers choices in the store; the models themselves are made once per process."""

    def __init__(
        self, store: Store, *, offered: Sequence[str], make: Callable[[str], ModelChain]
    ) -> None:
        self._store, self._make = store, make
        #: What the settings name: the main model first.
        self.offered = tuple(offered)
        self._made: dict[str, ModelChain] = {}

    async def name(self, conversation: ConversationId) -> str:
        """The model that the conversation asks first."""
        return await self._chosen(conversation) or self.offered[0]

    async def choose(self, conversation: ConversationId, name: str) -> None:
        """
        Ask this model from the next turn on.

        :raises SettingsError: if there is no such model, or it cannot be used here
        """
        self._models(name)
        before = await self.name(conversation)
        if name != before:
            await self._store.write(standing.choose_model, conversation, name, before=before)

    async def models(self, conversation: ConversationId) -> ModelChain | None:
        """The chosen model with its stand-ins; ``None`` where none was chosen, or it is gone."""
        name = await self._chosen(conversation)
        if name is None or name == self.offered[0]:
            return None
        try:
            return self._models(name)
        except SettingsError as error:
            log.warning("chosen_model_gone", conversation=conversation, error=str(error))
            return None

    def made(self, name: str) -> Model:
        """
        The model of this name, as if it had been chosen.

        :raises SettingsError: if there is no such model, or it cannot be used here
        """
        found = self._models(name).find_by_name(None)
        assert found is not None
        return found

    async def _chosen(self, conversation: ConversationId) -> str | None:
        value = await self._store.read(settings.get_setting, conversation, settings.MODEL_SETTING)
        return None if value is None else json.loads(value)

    def _models(self, name: str) -> ModelChain:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]
