"""Memories: the scopes of facts. An agent has that of its conversation, one of its own, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import UsageError
from clew.features.memory import links
from clew.store.transactions.conversations import get_scope

if TYPE_CHECKING:
    from clew.core.agent_profile import AgentProfile
    from clew.core.ids import ConversationId
    from clew.core.scope import Scope
    from clew.plugin import FeatureContext
    from clew.store.contract import Tx


def find_memory(t: Tx, scope: Scope, profile: AgentProfile | None) -> Scope | None:
    """Return the scope of an agent's memory in conversations of a scope; ``None`` for none."""
    name = None if profile is None else profile.memory
    main = links.find_main(t, scope)
    if name is None:
        return main
    return links.name_own_memory(name, main) if name else None


def get_memory(t: Tx, scope: Scope, profile: AgentProfile | None) -> Scope:
    """
    Return the scope of an agent's memory in conversations of a scope.

    :raises UsageError: if it remembers nothing
    """
    found = find_memory(t, scope, profile)
    if found is None:
        raise UsageError("the agent of this conversation has no memory: its settings say so")
    return found


def find_memory_of(t: Tx, services: FeatureContext, conversation: ConversationId) -> Scope | None:
    """Return the scope of the memory of a conversation's agent; ``None`` for none."""
    return find_memory(t, get_scope(t, conversation), services.find_profile(t, conversation))
