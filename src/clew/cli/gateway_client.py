"""Calls of operations of the server that runs in a home, which may be restarted meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Self

from pydantic import ConfigDict, RootModel

from clew.cli.server_connection import connect_to_server
from clew.tui.client import RpcClient
from clew.tui.transports import ConnectionLost, ConnectionRefused, ServerSilent
from clew.wire.errors import RETRYABLE_CODES, CallFailed, ErrorCode
from clew.wire.methods import RpcMethod
from clew.wire.params import Params

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from clew.config import Settings
    from clew.tui.transports import Connect, FrameConnection

#: Seconds that a call waits for a gateway that is not there, as while it is restarted.
_CALL_TIMEOUT: Final = 30.0
#: Seconds between two attempts of a call.
_PAUSE: Final = 0.2


async def is_server_running(settings: Settings) -> bool:
    """Return whether a server runs in the home, or starts there."""
    try:
        async with AsyncExitStack() as stack:
            return await connect_to_server(settings, stack) is not None
    except (ServerSilent, ConnectionRefused):
        return True  # it is starting, or every call will say what is wrong


def _make_connect(settings: Settings) -> Connect:
    """Return a connector to whichever server runs in the home when it is called."""

    @asynccontextmanager
    async def connect() -> AsyncGenerator[FrameConnection]:
        async with AsyncExitStack() as stack:
            connection = await connect_to_server(settings, stack)
            if connection is None:
                raise ConnectionLost("no server runs in this home")
            yield connection

    return connect


class _AnyParams(Params):
    """Parameters that the server checks."""

    model_config = ConfigDict(extra="allow")


class _AnyResult(RootModel[dict[str, Any]]):
    """A result of any method."""


class GatewayClient:
    """Client of the operations of the running server."""

    def __init__(self, rpc: RpcClient) -> None:
        self._rpc = rpc

    @classmethod
    @asynccontextmanager
    async def connected(cls, settings: Settings) -> AsyncGenerator[Self]:
        """Yield a client of whichever server runs in the home at each call."""
        async with RpcClient(_make_connect(settings)) as rpc:
            yield cls(rpc)

    async def call(self, method: str, given: Mapping[str, object]) -> dict[str, Any]:
        """
        Call an operation; one that was broken off is repeated.

        All that are called here may be: they read, carry a key, or name an approval, whose same
        answer is accepted again.

        :raises CallFailed: if the call fails
        """
        request = RpcMethod(name=method, params=_AnyParams, result=_AnyResult, summary="")
        try:
            async with asyncio.timeout(_CALL_TIMEOUT):
                return (await self._call_patiently(request, _AnyParams(**given))).root
        except TimeoutError:
            message = "clew serve has stopped, or does not answer: start it again"
            raise CallFailed.from_code(ErrorCode.DISCONNECTED, message) from None
        except ConnectionRefused as error:
            raise CallFailed.from_code(ErrorCode.DISCONNECTED, str(error)) from error

    async def _call_patiently(
        self, request: RpcMethod[_AnyParams, _AnyResult], params: _AnyParams
    ) -> _AnyResult:
        while True:
            try:
                return await self._rpc.call(request, params)
            except CallFailed as error:
                if error.code not in {ErrorCode.DISCONNECTED, *RETRYABLE_CODES}:
                    raise
            await asyncio.sleep(_PAUSE)
