"""Tools behind the journal: a capability that wraps whatever tools an agent has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import structlog
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry
from pydantic_ai.toolsets import WrapperToolset
from pydantic_core import to_json

from clew.agent import results
from clew.agent.ports import NeedsApproval, ToolRequest, ToolResult
from clew.core.effect import declared
from clew.core.journal import CallStatus

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from pydantic_ai import RunContext
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

    from clew.agent.ports import Journal


log = structlog.get_logger(__name__)


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
            args=to_json(tool_args, fallback=str).decode(),
            effect=declared(tool.tool_def.metadata),
            needs_approval=_needs_approval(tool),
        )

        async def execute(approved: bool) -> ToolResult:
            context = replace(ctx, tool_call_approved=approved)
            return await settled(self.wrapped.call_tool(name, tool_args, context, tool), name)

        return results.given(await self.journal.call(request, execute))


async def settled(call: Awaitable[object], tool: str) -> ToolResult:
    """
    Wait for a tool and give its result, whatever it did: an error is told to the model.

    :raises NeedsApproval: if the tool asks for a person's word
    """
    try:
        form, text = results.encode(await call)
    except (ApprovalRequired, CallDeferred) as error:
        raise NeedsApproval from error
    except ModelRetry as error:
        return results.said(CallStatus.RETRY, error.message)
    except Exception as error:
        log.warning("tool_failed", tool=tool, exc_info=True)
        return results.said(CallStatus.ERROR, f"{type(error).__name__}: {error}")
    return ToolResult(status=CallStatus.OK, format=form, result=text)


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
