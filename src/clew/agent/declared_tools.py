"""Tools that features declare in plain terms, as a toolset of the model library."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

import structlog
from pydantic_ai import Tool
from pydantic_ai.toolsets import FunctionToolset

from clew.agent.bound_tools import BoundToolset
from clew.agent.turn_context import get_turn_context
from clew.core.tool_declaration import (
    AWAITS_TURNS_KEY,
    EFFECTS_KEY,
    FACTS_KEY,
    TIMEOUT_KEY,
    UNTRUSTED_KEY,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

    from pydantic_ai import RunContext
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset

    from clew.core.tool_declaration import BoundToolSource, ToolDeclaration

    _Prepare = Callable[[RunContext[Any], ToolDefinition], Awaitable[ToolDefinition | None]]

log = structlog.get_logger(__name__)


def make_declared_toolsets(
    declared: Iterable[ToolDeclaration],
    bound: Sequence[BoundToolSource] = (),
    *,
    taken: Collection[str] = (),
) -> list[AbstractToolset[Any]]:
    """Return toolsets of the tools, without those whose names the agent has ``taken``."""
    tools = [_make_tool(one) for one in declared if one.name not in taken]
    if not tools:
        return []
    made = FunctionToolset[Any](tools=tools)
    return [made, BoundToolset(bound, made.tools, taken=taken)] if bound else [made]


def get_call_timeout(definition: ToolDefinition, default: timedelta) -> timedelta:
    """Return the time limit of a tool's calls."""
    seconds = (definition.metadata or {}).get(TIMEOUT_KEY)
    return default if seconds is None else timedelta(seconds=seconds)


def _make_tool(declared: ToolDeclaration) -> Tool[Any]:
    metadata: dict[str, Any] = {"effect": declared.effect.value}
    if declared.facts is not None:
        metadata[FACTS_KEY] = declared.facts
    if declared.effects is not None:
        metadata[EFFECTS_KEY] = declared.effects
    if declared.untrusted:
        metadata[UNTRUSTED_KEY] = True
    if declared.awaits_turns:
        metadata[AWAITS_TURNS_KEY] = True
    if declared.timeout is not None:
        metadata[TIMEOUT_KEY] = declared.timeout.total_seconds()
    prepare = None if declared.when is None else _make_filter(declared.name, declared.when)
    if declared.choices:
        prepare = _make_describer(declared.choices, prepare)
    if declared.parameters is not None:
        tool = Tool[Any].from_schema(
            declared.function,
            name=declared.name,
            description=declared.description,
            json_schema=dict(declared.parameters),
            sequential=declared.in_order,
        )
        tool.metadata, tool.prepare = metadata, prepare
        return tool
    return Tool(
        declared.function,
        name=declared.name,
        metadata=metadata,
        prepare=prepare,
        sequential=declared.in_order,
    )


def _make_describer(
    choices: Mapping[str, Callable[[], Mapping[str, str]]], prepare: _Prepare | None
) -> _Prepare:
    """Return a function that tells the model the values of parameters as they are now."""

    async def describe(ctx: RunContext[Any], definition: ToolDefinition) -> ToolDefinition | None:
        offered = definition if prepare is None else await prepare(ctx, definition)
        if offered is None:
            return None
        schema = offered.parameters_json_schema
        properties = dict(schema["properties"])
        for name, find in choices.items():
            if values := find():
                properties[name] = _describe_choices(properties[name], values)
            else:
                del properties[name]
        return replace(offered, parameters_json_schema={**schema, "properties": properties})

    return describe


def _describe_choices(schema: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    meanings = "; ".join(
        f"{name}: {meaning}" if meaning else name for name, meaning in values.items()
    )
    described = f"{schema.get('description', '')} {meanings}".strip()
    return {**schema, "enum": [*values], "description": described}


def _make_filter(name: str, when: Callable[[Any], bool | Awaitable[bool]]) -> _Prepare:
    """Return a function that leaves the tool out where it is not offered."""

    async def filter_tool(_: RunContext[Any], definition: ToolDefinition) -> ToolDefinition | None:
        # Outside of a turn a request is only rebuilt.
        if (context := get_turn_context()) is None:
            return definition
        try:
            answer = when(context)
            offered = await answer if isawaitable(answer) else answer
            return definition if offered else None
        except Exception as error:  # noqa: BLE001  (the code of a feature may raise anything)
            log.warning("tool_left_out", tool=name, error=repr(error))
            return None

    return filter_tool
