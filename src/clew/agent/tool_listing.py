"""The agent's own tools, as they are listed for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic_ai.toolsets import ApprovalRequiredToolset, FunctionToolset, WrapperToolset

from clew.core.effect import effect_of
from clew.core.listed_tool import ApprovalDefault, ListedTool
from clew.core.tool_declaration import FACTS_KEY, UNTRUSTED_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_ai import Tool
    from pydantic_ai.agent import AbstractAgent
    from pydantic_ai.toolsets import AbstractToolset

_MAX_DEPTH: Final = 20


def list_agent_tools(agent: AbstractAgent[Any, Any]) -> list[ListedTool]:
    """
    Return the tools of an agent, in order.

    Toolsets that list their tools only on request, such as MCP servers, are named as a whole.
    """
    return [one for toolset in agent.toolsets for one in _list_toolset(toolset)]


def _list_toolset(toolset: AbstractToolset[Any]) -> Iterator[ListedTool]:
    asks, shown = False, toolset
    for _ in range(_MAX_DEPTH):
        if not isinstance(shown, WrapperToolset):
            break
        asks = asks or isinstance(shown, ApprovalRequiredToolset)
        shown = shown.wrapped
    leaves = list[Any]()
    shown.apply(leaves.append)
    for leaf in leaves:
        if isinstance(leaf, FunctionToolset):
            tools: list[Tool[Any]] = list(leaf.tools.values())
            yield from (_list_tool(tool, may_ask=asks) for tool in tools)
        else:
            name = leaf.id or leaf.label
            yield ListedTool(
                name=name, effect=None, default=ApprovalDefault.BY_CALL, untrusted=False
            )


def _list_tool(tool: Tool[Any], *, may_ask: bool) -> ListedTool:
    metadata = tool.metadata or {}
    if tool.requires_approval:
        default = ApprovalDefault.ASKS
    elif may_ask or metadata.get(FACTS_KEY) is not None:
        default = ApprovalDefault.BY_CALL
    else:
        default = ApprovalDefault.RUNS
    return ListedTool(
        name=tool.name,
        effect=effect_of(metadata),
        default=default,
        untrusted=bool(metadata.get(UNTRUSTED_KEY)),
    )
