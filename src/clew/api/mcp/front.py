"""The server of the SDK: what it lists and does, as one client of the operations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from clew.api.mcp.messages import send_message
from clew.api.mcp.resources import list_resources, read_resource
from clew.api.mcp.shapes import URI_PREFIX
from clew.api.mcp.tools import SEND_MESSAGE, TOOLS, McpAccess
from clew.distribution import VERSION
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.meta import KEY_FIELD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp.server.context import ServerRequestContext

    from clew.api.mcp.messages import Report
    from clew.api.mcp.operation_client import MethodCatalog, OperationClient
    from clew.api.mcp.tools import McpFrontTool

_INSTRUCTIONS: Final = (
    "Conversations with an agent that are stored for good: read and search them, and send messages "
    "that are answered even if the connection is lost. A conversation is a NAME, which is opened "
    "when it is used first, or an id."
)
_JSON: Final = "application/json"
_TEMPLATES: Final = (
    types.ResourceTemplate(
        name="conversation",
        uri_template=f"{URI_PREFIX}{{conversation}}",
        description="A conversation with its newest entries",
        mime_type=_JSON,
    ),
    types.ResourceTemplate(
        name="entry",
        uri_template=f"{URI_PREFIX}{{conversation}}/entries/{{seq}}",
        description="One entry of a conversation, whole",
        mime_type=_JSON,
    ),
)


def build_server(
    client: OperationClient, catalog: MethodCatalog, access: McpAccess = McpAccess.OPERATE
) -> Server[Any]:
    """Return a server that calls operations through a client."""
    front = _McpFront(client, catalog, access)
    return Server(
        "clew",
        version=VERSION,
        title="Clew",
        instructions=_INSTRUCTIONS,
        on_list_tools=front.list_tools,
        on_call_tool=front.call_tool,
        on_list_resources=front.list_resources,
        on_list_resource_templates=front.list_templates,
        on_read_resource=front.read_resource,
    )


class _McpFront:
    """The handlers of one server."""

    def __init__(self, client: OperationClient, catalog: MethodCatalog, access: McpAccess) -> None:
        self._client, self._catalog, self._access = client, catalog, access

    async def list_tools(
        self, _: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        try:
            methods = await self._catalog.get(self._client)
        except CallFailed as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        tools = self._find_tools(methods)
        return types.ListToolsResult(
            tools=[_describe_tool(tool, methods[tool.method]) for tool in tools]
        )

    def _find_tools(self, methods: Mapping[str, object]) -> Sequence[McpFrontTool]:
        return [one for one in TOOLS if one.access <= self._access and one.method in methods]

    async def call_tool(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments = dict(params.arguments or {})
        key = dict(params.meta or {}).get(KEY_FIELD)
        if params.name == SEND_MESSAGE.name and key is not None:
            arguments.setdefault("key", key)
        try:
            result = await self._run_tool(params.name, arguments, _make_report(context))
        except CallFailed as error:
            return _make_failure(str(error))
        return _make_result(result)

    async def _run_tool(
        self, name: str, arguments: Mapping[str, Any], report: Report
    ) -> dict[str, Any]:
        methods = await self._catalog.get(self._client)
        tools = {one.name: one for one in self._find_tools(methods)}
        if (tool := tools.get(name)) is None:
            raise CallFailed.from_code(ErrorCode.METHOD_NOT_FOUND, self._explain_missing(name))
        params = tool.make_params(arguments, tool.make_schema(methods[tool.method]))
        if tool is SEND_MESSAGE:
            return await send_message(self._client, params, report)
        return tool.shape(await self._client.call(tool.method, params))

    def _explain_missing(self, name: str) -> str:
        known = next((one for one in TOOLS if one.name == name), None)
        if known is None or known.access <= self._access:
            return f"there is no tool {name[:100]!r}"
        scope, needed = self._access.name.lower(), known.access.name.lower()
        return f"{name} is not offered: this client has the scope {scope}, and it needs {needed}"

    async def list_resources(
        self, _: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        try:
            page = await list_resources(self._client, None if params is None else params.cursor)
        except CallFailed as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        resources = [types.Resource(**one, mime_type=_JSON) for one in page.items]
        return types.ListResourcesResult(resources=resources, next_cursor=page.next)

    async def list_templates(
        self, _: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=list(_TEMPLATES))

    async def read_resource(
        self, _: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        try:
            found = await read_resource(self._client, params.uri)
        except CallFailed as error:
            raise MCPError(types.INVALID_PARAMS, str(error), {"uri": params.uri}) from error
        contents = types.TextResourceContents(uri=params.uri, mime_type=_JSON, text=_dump(found))
        return types.ReadResourceResult(contents=[contents])


def _describe_tool(tool: McpFrontTool, parameters: Mapping[str, Any]) -> types.Tool:
    only_reads = tool.access is McpAccess.READ
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.make_schema(parameters),
        annotations=types.ToolAnnotations(
            read_only_hint=only_reads,
            destructive_hint=None if only_reads else True,
            idempotent_hint=tool.is_idempotent,
            open_world_hint=not only_reads,
        ),
    )


def _make_report(context: ServerRequestContext[Any]) -> Report:
    async def report(seconds: float, wait: float, state: str) -> None:
        await context.session.report_progress(seconds, wait, state)

    return report


def _make_failure(message: str) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=message)],
        structured_content={"message": message},
        is_error=True,
    )


def _make_result(found: Mapping[str, Any]) -> types.CallToolResult:
    """Return a result; a message without an answer is an error."""
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=_dump(found))],
        structured_content=dict(found),
        is_error=found.get("error") is not None,
    )


def _dump(found: Mapping[str, Any]) -> str:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))
