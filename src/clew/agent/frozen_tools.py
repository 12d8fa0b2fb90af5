"""Toolset that keeps the definitions of a session while its tools change, vanish or are added."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ToolsetTool, WrapperToolset
from pydantic_core import to_json

from clew.agent.bound_tools import ANY_ARGUMENTS
from clew.core.tool_declaration import BOUND_KEY
from clew.errors import ClewError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_ai import RunContext

    from clew.core.tool_declaration import BoundTool

#: Fields of a definition that requests contain.
_SENT_FIELDS: Final = (
    "name", "description", "parameters_json_schema", "strict", "defer_loading", "return_schema",
    "include_return_schema",
)  # fmt: skip
_EMPTY = ToolDefinition(name="")
_DEFAULTS: Final = {name: getattr(_EMPTY, name) for name in _SENT_FIELDS}


class ToolUnavailable(ClewError):
    """Tool of the session's list that is not offered any more."""

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"{tool!r} is not available any more, although it is still in the list of tools; "
            "do without it"
        )


def dump_definitions(definitions: Iterable[ToolDefinition]) -> str:
    """Return the definitions as requests contain them, as JSON in the order of the tools."""
    return to_json([_sent_values(one) for one in definitions], fallback=str).decode()


def load_definitions(stored: str) -> dict[str, dict[str, Any]]:
    """Return the stored fields of each definition by name."""
    return {fields["name"]: fields for fields in json.loads(stored)}


def _is_listed(tool: ToolsetTool[Any]) -> bool:
    bound: BoundTool | None = (tool.tool_def.metadata or {}).get(BOUND_KEY)
    return bound is None or bound.listed


def _sent_values(definition: ToolDefinition) -> dict[str, Any]:
    values = {name: getattr(definition, name) for name in _SENT_FIELDS}
    if not definition.include_return_schema:
        values["return_schema"] = None
    return {name: value for name, value in values.items() if value != _DEFAULTS[name]}


@dataclass
class _MissingTool(ToolsetTool[Any]):
    """A tool of the session that nothing offers now."""


@dataclass
class ToolList:
    """The list of tools of a session, in one run."""

    #: As stored, by name; ``None`` before that.
    definitions: dict[str, dict[str, Any]] | None = None
    #: As last offered to the model.
    offered: list[ToolDefinition] = field(default_factory=list[ToolDefinition])
    #: Current parameters of the tools that take others than the model was told.
    changed: dict[str, dict[str, Any]] = field(default_factory=dict[str, Any])


@dataclass
class FrozenToolset(WrapperToolset[Any]):
    """Toolset whose list of tools does not change once the session has one."""

    #: Shared: each run has a copy of the toolset.
    tools: ToolList

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await super().get_tools(ctx)
        self.tools.changed = {}
        if (definitions := self.tools.definitions) is None:
            tools = {name: tool for name, tool in tools.items() if _is_listed(tool)}
        else:
            tools = {
                name: self._serve_tool(fields, tools.get(name), ctx)
                for name, fields in definitions.items()
            }
        self.tools.offered = [tool.tool_def for tool in tools.values()]
        return tools

    def _serve_tool(
        self, fields: dict[str, Any], live: ToolsetTool[Any] | None, ctx: RunContext[Any]
    ) -> ToolsetTool[Any]:
        if live is None:
            return _MissingTool(
                toolset=self,
                tool_def=ToolDefinition(**fields, metadata={"effect": "pure"}),
                max_retries=ctx.max_retries,
                # Whatever the model was told that it takes.
                args_validator=ANY_ARGUMENTS,
            )
        now = _sent_values(live.tool_def)
        # Most are JSON already, and equal as they are.
        if now == fields or json.loads(to_json(now, fallback=str)) == fields:
            return live
        parameters = live.tool_def.parameters_json_schema
        if parameters != fields.get("parameters_json_schema", _DEFAULTS["parameters_json_schema"]):
            self.tools.changed[fields["name"]] = parameters
        defaults = {name: _DEFAULTS[name] for name in _SENT_FIELDS if name not in fields}
        return replace(live, tool_def=replace(live.tool_def, **defaults, **fields))

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        if isinstance(tool, _MissingTool):
            raise ToolUnavailable(name)
        return await super().call_tool(name, tool_args, ctx, tool)
