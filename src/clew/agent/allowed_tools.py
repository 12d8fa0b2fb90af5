"""Toolset of an agent that is held to some of the tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_ai.toolsets import WrapperToolset

from clew.core.tool_declaration import BOUND_KEY

if TYPE_CHECKING:
    from collections.abc import Collection

    from pydantic_ai import RunContext
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

    from clew.core.tool_declaration import BoundTool


@dataclass
class AllowedToolset(WrapperToolset[Any]):
    """Toolset without the tools that are not named."""

    names: Collection[str]

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await super().get_tools(ctx)
        return {name: tool for name, tool in tools.items() if _get_called(name, tool) in self.names}


def _get_called(name: str, tool: ToolsetTool[Any]) -> str:
    """Return the name of the tool that is called: of one that stands for another, that one."""
    bound: BoundTool | None = (tool.tool_def.metadata or {}).get(BOUND_KEY)
    return name if bound is None else bound.calls


def allow_tools(
    toolset: AbstractToolset[Any], names: Collection[str] | None
) -> AbstractToolset[Any]:
    """Return the toolset with these tools only; ``None`` keeps all."""
    return toolset if names is None else AllowedToolset(toolset, names)
