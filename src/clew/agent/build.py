"""The agent: the default one, or the user's own."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, cast

import pydantic_ai
from pydantic_ai import Agent
from pydantic_ai.agent import AbstractAgent

from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

# Standard output belongs to the conversation.
pydantic_ai.BANNER_ENABLED = False


def build_agent(
    *, instructions: str, object_path: str | None, tool_modules: Sequence[str] = ()
) -> AbstractAgent[Any, Any]:
    """
    The agent of the settings; without ``object_path`` one with these instructions and tools.

    :raises SettingsError: if what a setting names cannot be imported or is no agent
    """
    if object_path is not None:
        return _imported(object_path)
    tools = [tool for module in tool_modules for tool in _tools(module)]
    return Agent(instructions=instructions or None, tools=tools)


def _imported(path: str) -> AbstractAgent[Any, Any]:
    module, colon, name = path.partition(":")
    if not colon:
        raise SettingsError(f"agent.object {path!r} must be MODULE:NAME, for example my.agents:bot")
    found = getattr(_module(module, "agent.object"), name, None)
    if not isinstance(found, AbstractAgent):
        raise SettingsError(f"agent.object {path!r} is no Pydantic AI agent")
    return cast("AbstractAgent[Any, Any]", found)


def _tools(module: str) -> list[Any]:
    """What a module offers as tools: its list ``tools``."""
    found = getattr(_module(module, "tools.modules"), "tools", None)
    if not isinstance(found, list):
        raise SettingsError(
            f"tools.modules: {module!r} has no list named tools: tools = [my_function, …]"
        )
    return list(found)  # pyright: ignore[reportUnknownArgumentType]


def _module(name: str, setting: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SettingsError(f"{setting}: {name!r} cannot be imported: {error}") from error
