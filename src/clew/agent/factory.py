"""Construction of the agent: the default one or the user's own."""

from __future__ import annotations

import importlib
import traceback
from typing import TYPE_CHECKING, Any, Final, cast

import pydantic_ai
from pydantic_ai import Agent
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.toolsets import AbstractToolset

from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

# Standard output belongs to the conversation.
pydantic_ai.BANNER_ENABLED = False

#: Files in the traceback of every import.
_IMPORT_FILES: Final = frozenset({__file__, importlib.__file__})


def build_agent(
    *,
    instructions: str,
    object_path: str | None,
    tool_modules: Sequence[str] = (),
) -> AbstractAgent[Any, Any]:
    """
    Return the configured agent; without ``object_path`` one with these arguments.

    :raises SettingsError: if the object of a setting cannot be imported or is not an agent
    """
    if object_path is not None:
        return _import_agent(object_path)
    found = [tool for module in tool_modules for tool in _load_tools(module)]
    return Agent(instructions=instructions or None, tools=found)


def sort_capabilities(
    sources: Iterable[tuple[str, str, Callable[[], object]]],
) -> tuple[list[AbstractCapability[Any]], list[AbstractToolset[Any]]]:
    """
    Make capabilities and toolsets from their owners, names and functions.

    :raises SettingsError: if one cannot be made, or is neither
    """
    capabilities, toolsets = list[AbstractCapability[Any]](), list[AbstractToolset[Any]]()
    for owner, name, make in sources:
        try:
            made: Any = make()
        except Exception as error:
            raise SettingsError(
                f"the capability {name!r} of {owner!r} cannot be made: "
                f"{type(error).__name__}: {error}"
            ) from error
        if isinstance(made, AbstractCapability):
            capabilities.append(cast("AbstractCapability[Any]", made))
        elif isinstance(made, AbstractToolset):
            toolsets.append(cast("AbstractToolset[Any]", made))
        else:
            raise SettingsError(
                f"the capability {name!r} of {owner!r} is a {type(made).__name__}: a capability "
                "or toolset of Pydantic AI was expected"
            )
    return capabilities, toolsets


def _import_agent(path: str) -> AbstractAgent[Any, Any]:
    module, colon, name = path.partition(":")
    if not colon:
        raise SettingsError(f"agent.object {path!r} must be MODULE:NAME, for example my.agents:bot")
    imported = _import_module(module, "agent.object")
    found = getattr(imported, name, None)
    if not isinstance(found, AbstractAgent):
        names = cast("dict[str, object]", vars(imported))
        agents = [each for each, value in names.items() if isinstance(value, AbstractAgent)]
        has = f": {module} has {', '.join(agents)}" if agents else ""
        raise SettingsError(f"agent.object {path!r} is not a Pydantic AI agent{has}")
    return cast("AbstractAgent[Any, Any]", found)


def _load_tools(module: str) -> list[Any]:
    """Return the tools that a module offers in its list ``tools``."""
    found = getattr(_import_module(module, "tools.modules"), "tools", None)
    if not isinstance(found, list):
        raise SettingsError(
            f"tools.modules: {module!r} has no list named tools: tools = [my_function, …]"
        )
    return list(found)  # pyright: ignore[reportUnknownArgumentType]


def _import_module(name: str, setting: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        hint = (
            f"; put {name}.py into the folder plugins of CLEW_HOME, or install it"
            if error.name == name
            else f"{_format_location(error)}; install it where Clew is installed"
        )
        raise SettingsError(f"{setting}: {name!r} cannot be imported: {error}{hint}") from error
    except Exception as error:
        what = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        raise SettingsError(
            f"{setting}: {name!r} cannot be imported: {what}{error}{_format_location(error)}"
        ) from error


def _format_location(error: Exception) -> str:
    """Return where the user's code raised an error; empty for syntax errors, which contain it."""
    if isinstance(error, SyntaxError):
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        each for each in frames if each.filename not in _IMPORT_FILES and each.filename[0] != "<"
    ]
    return f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
