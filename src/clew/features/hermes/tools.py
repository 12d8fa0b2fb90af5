"""Tools of plugins as tools of the model."""

from __future__ import annotations

import json
import os
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from clew.errors import ClewError, SettingsError
from clew.features.hermes.hooks import select_accepted
from clew.features.hermes.worker import finish_call
from clew.plugin import ToolFacts, get_turn_context

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from clew.features.hermes.loaded import HermesTool, LoadedPlugin
    from clew.plugin import Registry, TurnContext

#: Names that every provider takes.
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
#: Seconds for the check whether a tool is available.
_CHECK_SECONDS: Final = 2.0


def declare_tools(
    registry: Registry, plugin: LoadedPlugin, *, only: Collection[str] | None = None
) -> None:
    """Declare the tools of a plugin; one whose name is taken is left out."""
    for tool in plugin.tools.values():
        if only is not None and tool.name not in only:
            continue
        if (why := _find_fault(tool)) is not None:
            plugin.unused.append(f"the tool {tool.name!r} is not offered: {why}")
            continue
        try:
            registry.add_tool(
                partial(_run_tool, plugin, tool),
                name=tool.name,
                facts=partial(_make_facts, plugin),
                untrusted=True,
                when=partial(_is_available, plugin, tool),
                parameters={"type": "object", **tool.parameters},
                description=tool.description,
            )
        except SettingsError as error:
            plugin.unused.append(f"the tool {tool.name!r} is not offered: {error}")


def _find_fault(tool: HermesTool) -> str | None:
    """Return why providers would refuse a request with the tool; ``None`` if they would not."""
    if not _NAME.fullmatch(tool.name):
        return "its name may have 64 characters of a-z, A-Z, 0-9, _ and -"
    try:
        json.dumps(tool.parameters)
    except (TypeError, ValueError, RecursionError):
        return "the schema of its arguments is not JSON"
    kind = tool.parameters.get("type", "object")
    return None if kind == "object" else f"its arguments are no object, but {kind!r}"


def explain_missing(plugin: LoadedPlugin, tool: HermesTool) -> str | None:
    """Return why a tool is not available; ``None`` if it is."""
    if missing := find_unset(tool.requires_env):
        return f"{', '.join(missing)} is not set in the environment"
    if tool.check is None:
        return None
    try:
        answer = plugin.worker.call(lambda: finish_call(_check(tool)), seconds=_CHECK_SECONDS)
    except TimeoutError:
        return "its check did not answer in time"
    except Exception as error:  # noqa: BLE001  (the code of a plugin may raise anything)
        return f"its check failed: {type(error).__name__}: {error}"
    return None if answer else "its check says that it is not available"


def find_unset(names: Sequence[str]) -> list[str]:
    """Return the environment variables that are not set."""
    return [name for name in names if not os.environ.get(name)]


def run_handler(tool: HermesTool, arguments: Mapping[str, Any]) -> str:
    """Run a tool, in the calling thread; an exit is an error."""
    context = get_turn_context()
    session = "" if context is None else context.session
    known = {"task_id": session, "session_id": session}
    try:
        result = finish_call(tool.handler(dict(arguments), **_select(tool.handler, known)))
    except SystemExit as error:
        raise ClewError(f"the tool {tool.name} ended with {error!r}") from error
    return result if isinstance(result, str) else json.dumps(result, default=str)


def _check(tool: HermesTool) -> Any:
    assert tool.check is not None
    return tool.check()


def _select(handler: Callable[..., Any], known: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the ids that a handler takes beside the arguments of the call."""
    accepted = select_accepted(handler, known)
    return {name: value for name, value in accepted.items() if name in known}


def _run_tool(plugin: LoadedPlugin, tool: HermesTool, /, **arguments: Any) -> str:
    with plugin.watch.running():
        return run_handler(tool, arguments)


def _make_facts(plugin: LoadedPlugin, _: Mapping[str, Any]) -> ToolFacts:
    """Return that a call may do anything, unless the operator trusts the plugin."""
    return ToolFacts(
        outward=not plugin.is_trusted, trusted=plugin.is_trusted, untrusted_result=True
    )


async def _is_available(plugin: LoadedPlugin, tool: HermesTool, _: TurnContext) -> bool:
    import asyncio  # noqa: PLC0415

    return await asyncio.to_thread(explain_missing, plugin, tool) is None
