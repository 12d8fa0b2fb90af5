"""Names of an agent's tools, as far as known before a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai.toolsets import FunctionToolset

from clew.agent.bound_tools import BoundToolset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.agent import AbstractAgent
    from pydantic_ai.toolsets import AbstractToolset


def list_tool_names(
    agent: AbstractAgent[Any, Any], more: Sequence[AbstractToolset[Any]] = ()
) -> tuple[str, ...]:
    """
    Return the names of the agent's functions, and of those in ``more``, in order.

    Toolsets that list their tools only on request, such as MCP servers, are named as a
    whole; tools that stand for others are left out.
    """
    names: dict[str, None] = {}

    def collect_names(toolset: AbstractToolset[Any]) -> None:
        if isinstance(toolset, FunctionToolset):
            names.update(dict.fromkeys(toolset.tools))
        elif not isinstance(toolset, BoundToolset):
            names[toolset.id or toolset.label] = None

    for toolset in (*agent.toolsets, *more):
        toolset.apply(collect_names)
    return tuple(names)
