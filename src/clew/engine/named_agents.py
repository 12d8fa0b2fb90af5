"""Named agents: what the settings say of the agents that routes name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from clew.core.agent_profile import WITHOUT_RIGHTS, StoredAgent
from clew.core.route import MAIN_AGENT
from clew.errors import UsageError
from clew.store.transactions.settings import find_agent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.core.agent_profile import AgentProfile, NamedAgent
    from clew.core.ids import ConversationId
    from clew.core.route import Route
    from clew.store.contract import Tx

log = structlog.get_logger(__name__)


class NamedAgents:
    """The agents of the settings, by name."""

    def __init__(self, agents: Mapping[str, NamedAgent]) -> None:
        self._agents = agents

    def check_name(self, name: str) -> None:
        """
        Check that a route may name this agent.

        :raises UsageError: naming the agents, if there is no such one
        """
        if name == MAIN_AGENT or name in self._agents:
            return
        known = ", ".join([MAIN_AGENT, *self._agents])
        raise UsageError(f"there is no agent {name!r} in the settings; there are {known}")

    def find_profile(self, stored: StoredAgent) -> AgentProfile | None:
        """
        Return the profile of a conversation's agent; ``None`` if it is as all others.

        An agent that the settings no longer have gets no tools: those of the main agent would
        be more than it had.
        """
        if stored.profile is not None or stored.name is None:
            return stored.profile
        if stored.name in self._agents:
            return self._agents[stored.name].profile
        log.warning("agent_not_in_settings", agent=stored.name)
        return WITHOUT_RIGHTS

    def find_profile_of(
        self, t: Tx, conversation: ConversationId | None, route: Route | None = None
    ) -> AgentProfile | None:
        """Return the profile of a conversation's agent; before one exists, that of its route."""
        if conversation is not None:
            return self.find_profile(find_agent(t, conversation))
        named = None if route is None or route.agent == MAIN_AGENT else route.agent
        return self.find_profile(StoredAgent(name=named))

    def find_model(self, name: str | None) -> str | None:
        """Return the name of the model that an agent asks, unless a person chose another."""
        found = None if name is None else self._agents.get(name)
        return found and found.model


#: Where the settings name none.
NO_AGENTS = NamedAgents({})
