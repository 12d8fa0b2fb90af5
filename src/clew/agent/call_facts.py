"""Facts about a call, made by the tool's own function, which may do anything."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog

from clew.agent.executor import DaemonThreadExecutor
from clew.core.call_policy import UnknownFacts
from clew.core.tool_facts import ToolFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clew.core.tool_facts import FactsFunction

#: Facts that take longer are unknown; a preview that does is left out.
MAX_FACTS_TIME: Final = timedelta(seconds=2)
_EXECUTOR: Final = DaemonThreadExecutor()
log = structlog.get_logger(__name__)


async def make_facts(
    function: FactsFunction,
    args: Mapping[str, Any],
    *,
    tool: str,
    longest: timedelta = MAX_FACTS_TIME,
) -> ToolFacts | UnknownFacts:
    """Return the facts about a call; whatever goes wrong, they are unknown."""
    try:
        async with asyncio.timeout(longest.total_seconds()):
            made: object = await _call_function(function, args)
    except TimeoutError:
        why = f"its facts took longer than {longest.total_seconds():g} s"
    except SystemExit:
        why = "its facts tried to end the program"
    except Exception as error:  # the code of a tool may raise anything
        log.warning("tool_facts_failed", tool=tool, exc_info=True)
        why = f"its facts could not be made ({type(error).__name__})"
    else:
        if isinstance(made, ToolFacts):
            return made
        why = "it has no facts about this call"
    return UnknownFacts(why=why)


async def _call_function(function: FactsFunction, args: Mapping[str, Any]) -> object:
    if inspect.iscoroutinefunction(function):
        return await function(args)
    made = await _run_in_thread(lambda: function(args))
    return await made if inspect.isawaitable(made) else made


async def _run_in_thread(function: Callable[[], object]) -> object:
    # It may block: in a thread, it cannot stop other turns.
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(
        _EXECUTOR, lambda: context.run(function)
    )


async def make_preview(
    facts: ToolFacts | UnknownFacts | None, *, tool: str, longest: timedelta = MAX_FACTS_TIME
) -> str | None:
    """Return what a question shows beside the arguments; ``None`` if it cannot be made."""
    if not isinstance(facts, ToolFacts):
        return None
    if not callable(facts.preview):
        return facts.preview
    try:
        async with asyncio.timeout(longest.total_seconds()):
            made = await _run_in_thread(facts.preview)
    except (Exception, SystemExit):  # the code of a tool may raise anything
        log.warning("tool_preview_failed", tool=tool, exc_info=True)
        return None
    return made if isinstance(made, str) else None
