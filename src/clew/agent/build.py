"""The agent: the default one, or the user's own."""

from __future__ import annotations

import importlib
import traceback
from typing import TYPE_CHECKING, Any, Final, cast

import pydantic_ai
from pydantic_ai import Agent
from pydantic_ai.agent import AbstractAgent

from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

# Standard output belongs to the conversation.
pydantic_ai.BANNER_ENABLED = False

#: Files through which every import goes.
_NOT_OWN: Final = frozenset({__file__, importlib.__file__})


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
    imported = _module(module, "agent.object")
    found = getattr(imported, name, None)
    if not isinstance(found, AbstractAgent):
        names = cast("dict[str, object]", vars(imported))
        agents = [each for each, value in names.items() if isinstance(value, AbstractAgent)]
        has = f": {module} has {', '.join(agents)}" if agents else ""
        raise SettingsError(f"agent.object {path!r} is no Pydantic AI agent{has}")
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
    except ModuleNotFoundError as error:
        hint = (
            f"; put {name}.py into the folder plugins of CLEW_HOME, or install it"
            if error.name == name
            else f"{_place(error)}; install it where Clew is installed"
        )
        raise SettingsError(f"{setting}: {name!r} cannot be imported: {error}{hint}") from error
    except Exception as error:
        what = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        raise SettingsError(
            f"{setting}: {name!r} cannot be imported: {what}{error}{_place(error)}"
        ) from error


def _place(error: Exception) -> str:
    """Where a person's own code raised it; a syntax error says that itself."""
    if isinstance(error, SyntaxError):
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if each.filename not in _NOT_OWN and each.filename[0] != "<"]
    return f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
