"""Tools that call a declared one with some of its arguments set, as a toolset of the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from clew.agent.turn_context import get_turn_context
from clew.core.tool_declaration import BOUND_KEY

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pydantic_ai import RunContext, Tool

    from clew.core.tool_declaration import BoundTool, BoundToolSource

log = structlog.get_logger(__name__)

#: The called tool compares its arguments itself.
ANY_ARGUMENTS = SchemaValidator(
    core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema())
)


class BoundToolset(AbstractToolset[Any]):
    """Toolset of what some sources find; a call has the arguments of the called tool."""

    def __init__(
        self,
        sources: Sequence[BoundToolSource],
        targets: Mapping[str, Tool[Any]],
        *,
        taken: Collection[str],
    ) -> None:
        self._sources, self._targets = sources, targets
        self._taken = {*taken, *targets}

    @property
    def id(self) -> str:
        return "bound tools"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        # Outside of a turn a request is only rebuilt, with the stored list.
        if (context := get_turn_context()) is None:
            return {}
        found = [one for source in self._sources for one in await _find(source, context)]
        return {
            one.name: self._make_tool(one, ctx)
            for one in found
            if one.calls in self._targets and one.name not in self._taken
        }

    def _make_tool(self, bound: BoundTool, ctx: RunContext[Any]) -> ToolsetTool[Any]:
        target = self._targets[bound.calls]
        return ToolsetTool(
            toolset=self,
            tool_def=ToolDefinition(
                name=bound.name,
                description=bound.description,
                parameters_json_schema=dict(bound.parameters),
                metadata={**(target.metadata or {}), BOUND_KEY: bound},
            ),
            max_retries=ctx.max_retries,
            args_validator=ANY_ARGUMENTS,
        )

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        bound: BoundTool = (tool.tool_def.metadata or {})[BOUND_KEY]
        schema = self._targets[bound.calls].function_schema
        return await schema.call(schema.validator.validate_python(tool_args), ctx)


async def _find(source: BoundToolSource, context: object) -> Sequence[BoundTool]:
    try:
        return await source.find(context)
    except Exception as error:  # noqa: BLE001  (the code of a feature may raise anything)
        log.warning("bound_tools_left_out", source=source.name, error=repr(error))
        return ()
