"""The tools of memory, as the model sees them; what they need is imported when they are called."""

# ruff: noqa: PLC0415

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from clew.core.tool_facts import ToolFacts

if TYPE_CHECKING:
    from collections.abc import Mapping


async def remember(
    fact: str,
    kind: Literal["profile", "preference", "fact", "plan"] = "fact",
    instead_of: int = 0,
) -> str:
    """
    Keep one sentence about this person or chat for later conversations.

    Args:
        fact: One sentence that is clear by itself.
        kind: What it is.
        instead_of: Number of the fact that it corrects.
    """
    from clew.features.memory import tool_calls

    return await tool_calls.remember(fact, kind, instead_of)


async def recall(query: str) -> str:
    """Find facts and earlier messages of this person or chat by words."""
    from clew.features.memory import tool_calls

    return await tool_calls.recall(query)


async def forget(number: int) -> str:
    """Erase a fact by its number."""
    from clew.features.memory import tool_calls

    return await tool_calls.forget(number)


def make_remember_facts(arguments: Mapping[str, Any]) -> ToolFacts:
    """Return the facts about a call that changes what later sessions are told."""
    return ToolFacts(internal=True, lasting=True, preview=str(arguments.get("fact") or "") or None)


def make_recall_facts(_: Mapping[str, Any]) -> ToolFacts:
    """Return the facts about a call that reads what Clew keeps of the scope."""
    return ToolFacts(internal=True)


def make_forget_facts(arguments: Mapping[str, Any]) -> ToolFacts:
    """Return the facts about a call that erases what later sessions are told."""
    return ToolFacts(internal=True, lasting=True, preview=f"fact {arguments.get('number')}")
