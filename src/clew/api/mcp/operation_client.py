"""Callers of operations: tools of MCP are calls over JSON-RPC, wherever the gateway runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol, cast

from clew.api.rpc.client import ConnectedClient, RpcCall
from clew.api.rpc.dispatch import dispatch_request
from clew.background import cancel_and_wait
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.framing import RpcErrorResponse, RpcRequest, RpcResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.api.operation_context import OperationContext


class OperationClient(Protocol):
    """A client of the operations."""

    async def call(self, method: str, given: Mapping[str, object]) -> dict[str, Any]:
        """
        Call an operation by the name of its method; return its result.

        :raises CallFailed: if the call fails
        """
        ...


class InProcessClient:
    """Client of the operations of this process, with the rights of its context."""

    def __init__(self, context: OperationContext, stopping: asyncio.Event) -> None:
        self._client = ConnectedClient(context=context, send=_drop_frame)
        self._stopping = stopping

    async def call(self, method: str, given: Mapping[str, object]) -> dict[str, Any]:
        """
        Call an operation, unless this process stops.

        :raises CallFailed: if the call fails
        """
        work = asyncio.ensure_future(self._dispatch(method, given))
        stopped = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise CallFailed.from_code(ErrorCode.STOPPING)
            return work.result()
        finally:
            await cancel_and_wait(work, stopped)

    async def _dispatch(self, method: str, given: Mapping[str, object]) -> dict[str, Any]:
        request = RpcRequest(id=0, method=method, params=given)
        call = RpcCall(context=self._client.context, client=self._client)
        match await dispatch_request(request, call):
            case RpcResponse(result=result):
                return cast("dict[str, Any]", result)
            case RpcErrorResponse(error=error):
                raise CallFailed(error)
            case None:
                raise AssertionError("a request with an id has a response")


async def _drop_frame(_: str) -> None:
    """Drop an event: nothing is subscribed to here."""


class MethodCatalog:
    """The parameters of all methods, as the gateway describes them; asked for once."""

    def __init__(self) -> None:
        self._found: Mapping[str, Mapping[str, Any]] | None = None

    async def get(self, client: OperationClient) -> Mapping[str, Mapping[str, Any]]:
        """
        Return the parameters of each method by its name.

        :raises CallFailed: if the gateway does not answer
        """
        if self._found is None:
            document = await client.call("rpc.discover", {})
            self._found = {
                each["name"]: {one["name"]: one for one in each["params"]}
                for each in document["methods"]
            }
        return self._found
