"""What the tools of MCP do: find, call and read, and the texts that the model gets."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from clew.core.effect import Effect
from clew.errors import CallOutcomeUnknown, ClewError, UsageError
from clew.features.mcp.connection import CallBroken, ServerState
from clew.features.mcp.ranking import rank_tools
from clew.plugin import get_turn_context

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.features.mcp.connection import ServerConnection
    from clew.features.mcp.definitions import McpTool
    from clew.features.mcp.pool import McpPool

#: Tools that a search shows with their parameters, and by name alone.
_SHOWN, _NAMED = 5, 15
#: Characters of the parameters, and of a description.
_MAX_SCHEMA: Final = 4_000
_MAX_DESCRIPTION: Final = 600
#: Resources of a server that are listed.
_MAX_RESOURCES: Final = 20
_RESOURCE_TIMEOUT: Final = 5.0
#: Attempts of a call that may be repeated.
_ATTEMPTS: Final = 2


async def find(pool: McpPool, query: str) -> str:
    """Return the tools that fit, with their parameters, and servers that are not up."""
    await pool.look()
    tools = [tool for one in pool.servers.values() for tool in one.tools.values()]
    found = rank_tools(query, tools)
    parts = [_describe_tool(tool) for tool in found[:_SHOWN]]
    if more := found[_SHOWN : _SHOWN + _NAMED]:
        parts.append("Others: " + ", ".join(f"{one.server}/{one.name}" for one in more))
    if not found:
        parts.append("No tool has these words." if query.strip() else "")
    parts += [_describe_server(one) for one in pool.servers.values() if _is_told(one, query)]
    named = [one for one in pool.servers.values() if one.name in query.split()]
    parts += [line for one in named for line in await _list_resources(one)]
    return "\n\n".join(part for part in parts if part)


def _is_told(one: ServerConnection, query: str) -> bool:
    return not query.strip() or one.status.state is not ServerState.UP or one.name in query.split()


def _describe_server(one: ServerConnection) -> str:
    return f"Server {one.name} is {one.status.describe()}; {len(one.tools)} tools are known"


async def _list_resources(one: ServerConnection) -> Iterator[str]:
    found: Sequence[Any] = ()
    with suppress(ClewError, TimeoutError):
        async with asyncio.timeout(_RESOURCE_TIMEOUT):
            found = await one.list_resources()
    shown = found[:_MAX_RESOURCES]
    return (f"Resource {one.name} {item.uri}: {item.description or item.name}" for item in shown)


def _describe_tool(tool: McpTool) -> str:
    described = tool.description.strip()
    if len(described) > _MAX_DESCRIPTION:
        described = f"{described[:_MAX_DESCRIPTION]}…"
    name = json.dumps(tool.name, ensure_ascii=False)
    return f"server {tool.server}, tool {name}: {described}\nargs: {_format_schema(tool)}"


def _format_schema(tool: McpTool) -> str:
    text = json.dumps(tool.schema, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= _MAX_SCHEMA else f"{text[:_MAX_SCHEMA]}… (cut)"


async def call(pool: McpPool, server: str, name: str, arguments: dict[str, Any]) -> str:
    """
    Call a tool; what may be repeated is, once, if its server ends meanwhile.

    :raises UsageError: if there is no such tool, its server is down, or it takes other arguments
    :raises CallOutcomeUnknown: if the server has ended before it answered
    """
    await pool.load()
    connection = pool.get(server)
    before = connection.tools.get(name)
    effect = Effect.ONCE if before is None else before.find_effect(connection.server.trust)
    for attempt in range(1, _ATTEMPTS + 1):
        tool = await _find_tool(connection, name)
        if tool.find_effect(connection.server.trust) is not effect:
            raise UsageError(f"the tool {name} has changed just now: find it again")
        check_arguments(tool, arguments)
        try:
            result = await connection.call(tool, arguments, key=_make_key(effect))
        except CallBroken as error:
            if effect is not Effect.ONCE and attempt < _ATTEMPTS:
                await connection.wait_until_up()
                continue
            raise CallOutcomeUnknown(
                f"{error}; whether {name} had its effect is not known: look before you repeat it"
            ) from error
        return format_result(result)
    raise AssertionError


def _make_key(effect: Effect) -> str | None:
    context = get_turn_context()
    if effect is not Effect.IDEMPOTENT or context is None or context.call_key is None:
        return None
    return context.call_key.make_digest()


async def _find_tool(connection: ServerConnection, name: str) -> McpTool:
    await connection.need()
    await connection.refresh()
    if (tool := connection.tools.get(name)) is not None:
        return tool
    near = get_close_matches(name, [*connection.tools], n=5)
    hint = f"; there are {', '.join(near)}" if near else ""
    raise UsageError(f"the server {connection.name} has no tool {name!r}{hint}")


def check_arguments(tool: McpTool, arguments: dict[str, Any]) -> None:
    """
    Compare arguments with what the tool takes now.

    :raises UsageError: saying what is wrong, and what it takes
    """
    from clew.features.mcp.arguments import find_problem  # noqa: PLC0415  (heavy)

    if (problem := find_problem(tool.schema, arguments)) is not None:
        raise UsageError(f"{tool.name} was not called: {problem}. It takes {_format_schema(tool)}")


async def read(pool: McpPool, server: str, uri: str) -> str:
    """
    Return a resource.

    :raises UsageError: if there is none, or its server is down
    """
    await pool.load()
    connection = pool.get(server)
    try:
        result = await connection.read_resource(uri)
    except CallBroken:
        result = await connection.read_resource(uri)
    return "\n".join(_format_contents(one) for one in result.contents) or "(empty)"


def _format_contents(contents: Any) -> str:
    if (text := getattr(contents, "text", None)) is not None:
        return text
    return f"[{contents.mime_type or 'bytes'}, {len(contents.blob):,} characters of Base64]"


def format_result(result: Any) -> str:
    """
    Return the result of a call as text.

    :raises UsageError: with the text, if the tool says that it is an error
    """
    text = "\n".join(map(format_block, result.content))
    if not text and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False)
    if result.is_error:
        raise UsageError(text or "the tool failed, and does not say why")
    return text or "(empty)"


def format_block(block: Any) -> str:
    """Return a part of a result or prompt as text."""
    match block.type:
        case "text":
            return block.text
        case "resource":
            return _format_contents(block.resource)
        case "resource_link":
            return f"[resource {block.uri}]"
        case kind:
            return f"[{kind}: {block.mime_type}, {len(block.data):,} characters of Base64]"
