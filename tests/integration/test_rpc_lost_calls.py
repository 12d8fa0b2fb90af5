"""A call whose request could not be sent leaves nothing behind that complains later."""

from __future__ import annotations

import asyncio
import gc
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from clew.tui.client import RpcClient
from clew.tui.transports import ConnectionLost
from clew.wire import methods
from clew.wire.errors import CallFailed
from clew.wire.params import OpenParams
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


class Stuck:
    """A connection whose sends stand still, and which is lost when the test says so."""

    def __init__(self, error: BaseException | None) -> None:
        self._error = error
        self.sending, self.lost, self.goes_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def send(self, frame: str) -> None:
        self.sending.set()
        await self.goes_on.wait()
        if self._error is not None:
            raise self._error

    async def receive(self) -> str:
        await self.lost.wait()
        raise ConnectionLost("gone")


@pytest.mark.parametrize(
    "error",
    [None, ConnectionLost("gone"), OSError("broken pipe"), ValueError("too large")],
    ids=repr,
)
async def test_a_call_whose_send_fails_complains_nowhere(error: BaseException | None) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    connections: list[Stuck] = []

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Any]:
        if connections:
            await asyncio.Event().wait()
        connections.append(Stuck(error))
        yield connections[0]

    async with RpcClient(connect) as client:
        await wait_until(lambda: client.is_connected)
        call = asyncio.create_task(client.call(methods.OPEN, OpenParams(conversation="main")))
        await connections[0].sending.wait()
        connections[0].lost.set()
        # The receiving task has resolved the call by then.
        await wait_until(lambda: not client.is_connected)
        connections[0].goes_on.set()
        with pytest.raises((CallFailed, OSError, ValueError)):
            await call
        del call
    gc.collect()
    await asyncio.sleep(0)
    assert complaints == []


async def test_a_call_that_is_given_up_while_it_is_sent_complains_nowhere() -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    connections: list[Stuck] = []

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Any]:
        if connections:
            await asyncio.Event().wait()
        connections.append(Stuck(None))
        yield connections[0]

    async with RpcClient(connect) as client:
        await wait_until(lambda: client.is_connected)
        call = asyncio.create_task(client.call(methods.OPEN, OpenParams(conversation="main")))
        await connections[0].sending.wait()
        connections[0].lost.set()
        await wait_until(lambda: not client.is_connected)
        call.cancel()
        await asyncio.wait({call})
        del call
    gc.collect()
    await asyncio.sleep(0)
    assert complaints == []
