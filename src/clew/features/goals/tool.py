"""The tool ``goal``, by which the agent ends its goal."""

# ruff: noqa: PLC0415

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from clew.core.tool_facts import ToolFacts

if TYPE_CHECKING:
    from collections.abc import Mapping


async def goal(state: Literal["done", "blocked"], reason: str) -> str:
    """
    End the goal that rounds of this conversation name.

    Args:
        state: done if it is reached; blocked if only a person can help.
        reason: A sentence for people.
    """
    from clew.features.goals.front import end_by_agent
    from clew.plugin import get_turn_context

    context = get_turn_context()
    if context is None:
        return "This conversation has no goal."
    store = context.services.store
    return await store.write(end_by_agent, context.conversation, state, reason.strip()[:500])


def make_facts(_: Mapping[str, Any]) -> ToolFacts:
    """Return the facts about a call, which changes only what Clew keeps."""
    return ToolFacts(internal=True)
