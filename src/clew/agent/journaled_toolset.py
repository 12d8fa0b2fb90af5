"""Capability that runs all tools of an agent through the journal."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

import structlog
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry
from pydantic_ai.tools import DeferredToolResults
from pydantic_ai.toolsets import WrapperToolset
from pydantic_core import to_json

from clew.agent import tool_results
from clew.agent.allowed_tools import allow_tools
from clew.agent.declared_tools import get_call_timeout
from clew.agent.limits import limit_toolsets
from clew.agent.protocols import CallSuspended, NeedsApproval, ToolRequest, ToolResult
from clew.agent.stored_results import add_result_reader
from clew.core.effect import Effect, effect_of
from clew.core.journal import CallStatus
from clew.core.tool_declaration import (
    AWAITS_TURNS_KEY,
    BOUND_KEY,
    EFFECTS_KEY,
    FACTS_KEY,
    UNTRUSTED_KEY,
)
from clew.errors import CallOutcomeUnknown, ClewError
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
    from datetime import timedelta

    from pydantic_ai import DeferredToolRequests, RunContext
    from pydantic_ai.capabilities import WrapToolExecuteHandler
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

    from clew.agent.protocols import Journal
    from clew.core.tool_declaration import BoundTool


log = structlog.get_logger(__name__)

_EXTERNAL_TOOL_ERROR = (
    "error: not run: this tool is run outside of this program, which hands no calls over"
)


class _CallPath(Record, kw_only=False):
    """Calls that the running code is inside of, from the outside in."""

    #: A tool may start another turn, whose calls are not inside of it.
    journal: Journal
    ids: tuple[str, ...]


_CALL_PATH: ContextVar[_CallPath | None] = ContextVar("clew_call_path", default=None)


def _get_call_path(journal: Journal) -> tuple[str, ...]:
    path = _CALL_PATH.get()
    return path.ids if path is not None and path.journal is journal else ()


@dataclass
class JournalCapability(AbstractCapability[Any]):
    """Capability that wraps every tool of a run, also of other capabilities, in the journal."""

    journal: Journal

    call_timeout: timedelta

    #: Retries per tool in the turn before this run.
    retries: Mapping[str, int]

    #: Time limit for a toolset to open and list its tools.
    toolset_timeout: timedelta

    #: Keeps the list of tools that the session has.
    freeze: Callable[[AbstractToolset[Any]], AbstractToolset[Any]]

    #: Names of the tools to which the agent is held; ``None`` for all.
    allowed: Collection[str] | None = None

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        allowed = allow_tools(limit_toolsets(toolset, self.toolset_timeout), self.allowed)
        bounded = add_result_reader(allowed, self.journal)
        return JournaledToolset(
            self.freeze(bounded), self.journal, self.call_timeout, dict(self.retries)
        )

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: WrapToolExecuteHandler,
    ) -> Any:
        """Note which call is made inside which; the outermost ends when one inside waits."""
        outer = _get_call_path(self.journal)
        token = _CALL_PATH.set(_CallPath(self.journal, (*outer, call.tool_call_id)))
        try:
            return await handler(args)
        except CallSuspended:
            if outer:
                raise
            return tool_results.WAITING_PLACEHOLDER
        finally:
            _CALL_PATH.reset(token)

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Answer calls that nothing here can run: without a result the run would end."""
        told = {call.tool_call_id: _EXTERNAL_TOOL_ERROR for call in requests.calls}
        return DeferredToolResults(calls=dict(told)) if told else None


@dataclass
class JournaledToolset(WrapperToolset[Any]):
    """Toolset that runs each call through the journal."""

    journal: Journal
    #: Time limit of a call; one that takes longer is abandoned.
    call_timeout: timedelta
    #: Retries per tool from before this run; empty once passed to the run.
    retries: dict[str, int]

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        # A run counts from zero, in the context of its first step; the turn has earlier counts.
        ctx.retries.update(self.retries)
        self.retries.clear()
        tools = await super().get_tools(ctx)
        return {name: _as_function_tool(tool) for name, tool in tools.items()}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        call_id = ctx.tool_call_id
        assert call_id is not None
        metadata = tool.tool_def.metadata or {}
        bound: BoundTool | None = metadata.get(BOUND_KEY)
        if bound is not None:
            # Decided about, stored and run as the call that it stands for.
            tool_args = bound.bind(tool_args)
        request = ToolRequest(
            call_id=call_id,
            tool=name if bound is None else bound.calls,
            args=to_json(tool_args, fallback=str).decode(),
            effect=await _find_effect(metadata, tool_args),
            needs_approval=_needs_approval(tool),
            facts=metadata.get(FACTS_KEY),
            untrusted=bool(metadata.get(UNTRUSTED_KEY)),
            awaits_turns=bool(metadata.get(AWAITS_TURNS_KEY)),
            enclosing=tuple(one for one in _get_call_path(self.journal) if one != call_id),
        )

        async def call_wrapped(args: str, approved: bool) -> object:
            context = replace(ctx, tool_call_approved=approved)
            given = tool_args
            if args != request.args:
                # Changed by a plugin, or a set in another order: convert to the tool's own types.
                given = tool.args_validator.validate_json(args, context=ctx.validation_context)
            return await self.wrapped.call_tool(name, given, context, tool)

        async def execute_tool(args: str, approved: bool) -> ToolResult:
            return await run_tool(
                call_wrapped(args, approved),
                name,
                call_id=request.call_id,
                longest=get_call_timeout(tool.tool_def, self.call_timeout),
            )

        result = await self.journal.execute_call(request, execute_tool)
        if request.enclosing:
            return tool_results.to_nested_return(result)
        return tool_results.to_tool_return(result)


async def run_tool(
    call: Coroutine[Any, Any, object], tool: str, *, call_id: str, longest: timedelta
) -> ToolResult:
    """
    Run a tool and return its result, whatever it does: the model receives its error.

    :raises NeedsApproval: if the tool asks for approval
    :raises CallSuspended: if a call inside of it waits for approval
    """
    try:
        return tool_results.encode_result(
            await _run_with_timeout(call, longest), tool=tool, call_id=call_id
        )
    except (ApprovalRequired, CallDeferred) as error:
        raise NeedsApproval from error
    except ModelRetry as error:
        return tool_results.make_text_result(
            CallStatus.RETRY, error.message, tool=tool, call_id=call_id
        )
    except CallOutcomeUnknown as error:
        return tool_results.make_text_result(
            CallStatus.UNKNOWN, str(error), tool=tool, call_id=call_id
        )
    except ClewError as error:  # a sentence, for the model
        return tool_results.make_text_result(
            CallStatus.ERROR, str(error), tool=tool, call_id=call_id
        )
    except Exception as error:  # whatever a tool raises is its result, for the model
        log.warning("tool_failed", tool=tool, exc_info=True)
        return tool_results.make_text_result(
            CallStatus.ERROR, _describe_error(error), tool=tool, call_id=call_id
        )


async def _run_with_timeout(call: Coroutine[Any, Any, object], longest: timedelta) -> object:
    """
    Wait for a call, but abandon it if it cannot be stopped.

    A synchronous tool runs in a thread, which cannot be stopped; a stop must not wait for
    it.
    """
    task = asyncio.create_task(_contain_exit(call), name="tool")
    task.add_done_callback(_consume_exception)
    try:
        done, _ = await asyncio.wait({task}, timeout=longest.total_seconds())
    except asyncio.CancelledError:
        task.cancel()
        raise
    if done:
        if task.cancelled():
            # Not by us: raised as a cancellation, it would stop the turn.
            raise RuntimeError("it was cancelled")
        return task.result()
    task.cancel()
    seconds = longest.total_seconds()
    raise TimeoutError(
        f"it took longer than {seconds:g} s and was abandoned; it may still be running"
    )


async def _contain_exit(call: Coroutine[Any, Any, object]) -> object:
    try:
        return await call
    except (Exception, asyncio.CancelledError, CallSuspended):
        raise
    except BaseException as error:
        raise RuntimeError(f"it tried to end the program ({type(error).__name__})") from error


def _describe_error(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  (a tool may raise anything)
        return type(error).__name__


def _consume_exception(task: asyncio.Task[object]) -> None:
    # Retrieved here, so that a later error of an abandoned call does not count as unhandled.
    if not task.cancelled():
        task.exception()


async def _find_effect(metadata: Mapping[str, Any], args: Mapping[str, Any]) -> Effect:
    """Return the effect of a call, by its arguments where the tool says so."""
    if (find := metadata.get(EFFECTS_KEY)) is None:
        return effect_of(metadata)
    try:
        found: Effect | Awaitable[Effect] = find(args)
        return Effect(await found if isawaitable(found) else found)
    except Exception:  # the code of a tool may raise anything
        log.warning("tool_effect_failed", exc_info=True)
        return Effect.ONCE


_APPROVAL_KEY = "clew:needs_approval"


def _as_function_tool(tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
    # Left as "unapproved", Pydantic AI would end the run instead of asking the journal.
    definition = tool.tool_def
    if definition.kind != "unapproved":
        return tool
    metadata = {**(definition.metadata or {}), _APPROVAL_KEY: True}
    return replace(tool, tool_def=replace(definition, kind="function", metadata=metadata))


def _needs_approval(tool: ToolsetTool[Any]) -> bool:
    return bool((tool.tool_def.metadata or {}).get(_APPROVAL_KEY))
