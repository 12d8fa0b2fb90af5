"""Facts about a call, made by the tool's own function, which may do anything."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog

from clew.agent.executor import DaemonThreadExecutor
from clew.core.policy import UnknownFacts
from clew.core.tool_facts import ToolFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.core.tool_facts import FactsFunction

#: Facts that take longer are unknown.
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
    # It may block: in a thread, it cannot stop other turns.
    context = contextvars.copy_context()
    made: object = await asyncio.get_running_loop().run_in_executor(
        _EXECUTOR, lambda: context.run(function, args)
    )
    return await made if inspect.isawaitable(made) else made
