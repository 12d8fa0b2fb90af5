"""The tool ``load_skill``, as the model sees it; what it needs is imported when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.core.tool_facts import ToolFacts

if TYPE_CHECKING:
    from collections.abc import Mapping


async def load_skill(name: str) -> str:
    """
    Get the instructions of a skill, to follow them.

    Args:
        name: Its name; NAME/FILE for a file of it; "?words" to search.
    """
    from clew.features.skills import tool_calls  # noqa: PLC0415  (declared by every command, needed by few)

    return await tool_calls.load_skill(name)


def make_load_facts(_: Mapping[str, Any]) -> ToolFacts:
    """Return the facts about a call that reads what a person trusts."""
    return ToolFacts(internal=True)
