"""The operation that lists MCP servers, for JSON-RPC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.api.operation_scope import LOCAL_CLIENTS
from clew.api.operations import make_operation
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import NoParams

if TYPE_CHECKING:
    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation
    from clew.features.mcp.connection import ServerConnection
    from clew.features.mcp.tool import McpTools


class McpServerShape(WireModel):
    """An MCP server that the agent uses."""

    name: str
    #: Its address, or how its command runs.
    place: str
    state: str
    #: Why it is down.
    why: str | None
    tools: int


class McpServerList(WireModel):
    items: list[McpServerShape]


_LIST = RpcMethod(
    name="mcp.list",
    params=NoParams,
    result=McpServerList,
    summary="The MCP servers that the agent uses, and how they are.",
)


def make_list_operation(tools: McpTools) -> AnyOperation:
    """Return the operation over the servers of a process."""

    async def list_servers(call: OperationCall, given: NoParams) -> McpServerList:
        pool = tools.get_pool(call.engine.feature_context)
        await pool.load()
        return McpServerList(items=[_describe(one) for one in pool.servers.values()])

    return make_operation(_LIST, list_servers, LOCAL_CLIENTS, is_ordered=False)


def _describe(one: ServerConnection) -> McpServerShape:
    return McpServerShape(
        name=one.name,
        place=one.server.place,
        state=one.status.state.value,
        why=one.status.why,
        tools=len(one.tools),
    )
