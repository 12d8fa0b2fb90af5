"""Tools behind the journal: a capability that wraps whatever tools an agent has."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import structlog
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry
from pydantic_ai.tools import DeferredToolResults
from pydantic_ai.toolsets import WrapperToolset
from pydantic_core import to_json

from clew.agent import results
from clew.agent.limits import bound_toolsets
from clew.agent.ports import NeedsApproval, ToolRequest, ToolResult
from clew.agent.stored_results import with_stored_results
from clew.core.effect import effect_of
from clew.core.journal import CallStatus

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from datetime import timedelta

    from pydantic_ai import DeferredToolRequests, RunContext
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

    from clew.agent.ports import Journal


log = structlog.get_logger(__name__)

_ELSEWHERE = "error: not run: this tool is run outside of this program, which hands no calls over"


@dataclass
class Journaling(AbstractCapability[Any]):
    """Puts the journal around every tool of a run, those of other capabilities included."""

    journal: Journal

    longest: timedelta

    #: Retries per tool that the turn has had before this run.
    retries: Mapping[str, int]

    #: A toolset that takes longer to come is given up.
    ready: timedelta

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        bounded = with_stored_results(bound_toolsets(toolset, self.ready), self.journal)
        return JournaledToolset(bounded, self.journal, self.longest, dict(self.retries))

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Answer calls that nobody here can carry out: without a result the run would end."""
        told = {call.tool_call_id: _ELSEWHERE for call in requests.calls}
        return DeferredToolResults(calls=dict(told)) if told else None


@dataclass
class JournaledToolset(WrapperToolset[Any]):
    """Runs each call through the journal."""

    journal: Journal
    #: A call that takes longer is given up; what it does then nobody waits for.
    longest: timedelta
    #: Retries per tool from before this run, until they are handed over.
    retries: dict[str, int]

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        # A run counts from nothing, in the context of its first step; the turn has counted before.
        ctx.retries.update(self.retries)
        self.retries.clear()
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
            effect=effect_of(tool.tool_def.metadata),
            needs_approval=_needs_approval(tool),
        )

        async def call(args: str, approved: bool) -> object:
            context = replace(ctx, tool_call_approved=approved)
            given = tool_args
            if args != request.args:
                # Changed by a plugin, or a set in another order: values of the tool's own types.
                given = tool.args_validator.validate_json(args, context=ctx.validation_context)
            return await self.wrapped.call_tool(name, given, context, tool)

        async def execute(args: str, approved: bool) -> ToolResult:
            return await settled(
                call(args, approved), name, call_id=request.call_id, longest=self.longest
            )

        return results.given(await self.journal.call(request, execute))


async def settled(
    call: Coroutine[Any, Any, object], tool: str, *, call_id: str, longest: timedelta
) -> ToolResult:
    """
    Wait for a tool and give its result, whatever it did: an error is told to the model.

    :raises NeedsApproval: if the tool asks for a person's word
    """
    try:
        return results.encode(await _bounded(call, longest), tool=tool, call_id=call_id)
    except (ApprovalRequired, CallDeferred) as error:
        raise NeedsApproval from error
    except ModelRetry as error:
        return results.said(CallStatus.RETRY, error.message, tool=tool, call_id=call_id)
    except Exception as error:
        log.warning("tool_failed", tool=tool, exc_info=True)
        return results.said(CallStatus.ERROR, _sentence(error), tool=tool, call_id=call_id)


async def _bounded(call: Coroutine[Any, Any, object], longest: timedelta) -> object:
    """
    Wait for a call, but not for one that cannot be stopped.

    A synchronous tool runs in a thread, which ends when it likes: a stop would have to wait for it.
    """
    task = asyncio.create_task(_not_ending_the_program(call), name="tool")
    task.add_done_callback(_forget)
    try:
        done, _ = await asyncio.wait({task}, timeout=longest.total_seconds())
    except asyncio.CancelledError:
        task.cancel()
        raise
    if done:
        if task.cancelled():
            # By itself: as a cancellation of ours it would stop the turn.
            raise RuntimeError("it was cancelled")
        return task.result()
    task.cancel()
    seconds = longest.total_seconds()
    raise TimeoutError(f"it took longer than {seconds:g} s and was given up; it may still go on")


async def _not_ending_the_program(call: Coroutine[Any, Any, object]) -> object:
    try:
        return await call
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:
        raise RuntimeError(f"it tried to end the program ({type(error).__name__})") from error


def _sentence(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  (what a tool raises is anybody's code)
        return type(error).__name__


def _forget(task: asyncio.Task[object]) -> None:
    # Retrieved here, so that what an abandoned call raises later is no unhandled error.
    if not task.cancelled():
        task.exception()


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
