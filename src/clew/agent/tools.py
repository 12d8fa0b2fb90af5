"""Tools behind the journal: a capability that wraps whatever tools an agent has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.toolsets import WrapperToolset

from clew.agent.ports import ToolRequest
from clew.core.effect import declared

if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

    from clew.agent.ports import Journal


@dataclass
class Journaling(AbstractCapability[Any]):
    """Puts the journal around every tool of a run, those of other capabilities included."""

    journal: Journal

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return JournaledToolset(toolset, self.journal)


@dataclass
class JournaledToolset(WrapperToolset[Any]):
    """Runs each call through the journal."""

    journal: Journal

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await super().get_tools(ctx)
        return {name: _plain(tool) for name, tool in tools.items()}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        assert ctx.tool_call_id is not None
        request = ToolRequest(
            call_id=ctx.tool_call_id,
            tool=name,
            args=tool_args,
            effect=declared(tool.tool_def.metadata),
            needs_approval=_needs_approval(tool),
        )

        async def execute(approved: bool) -> object:
            context = replace(ctx, tool_call_approved=approved)
            return await super(JournaledToolset, self).call_tool(name, tool_args, context, tool)

        try:
            return await self.journal.call(request, execute)
        except ApprovalRequired:
            return await self.journal.call(replace(request, needs_approval=True), execute)


_MARK = "clew:needs_approval"


def _plain(tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
    # Left as "unapproved", Pydantic AI would end the run instead of asking the journal.
    definition = tool.tool_def
    if definition.kind != "unapproved":
        return tool
    metadata = {**(definition.metadata or {}), _MARK: True}
    return replace(tool, tool_def=replace(definition, kind="function", metadata=metadata))


def _needs_approval(tool: ToolsetTool[Any]) -> bool:
    return bool((tool.tool_def.metadata or {}).get(_MARK))
