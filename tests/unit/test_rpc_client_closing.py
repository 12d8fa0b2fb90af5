"""The client of the protocol: a cancellation that comes while it closes is not swallowed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from clew.tui.client import RpcClient
from clew.tui.transports import ConnectionLost, ConnectionRefused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


async def until_cancelled(reached: asyncio.Event, released: asyncio.Event) -> None:
    """Wait for ever; once cancelled, say so and clean up until released."""
    try:
        await asyncio.Event().wait()
    finally:
        reached.set()
        await released.wait()


class Connection:
    """A connection that is lost while a request is being sent."""

    def __init__(self) -> None:
        self.sending, self.cleaning, self.released = (asyncio.Event() for _ in range(3))

    async def send(self, frame: str) -> None:
        self.sending.set()
        await until_cancelled(self.cleaning, self.released)

    async def receive(self) -> str:
        await self.sending.wait()
        raise ConnectionLost("lost")


async def test_a_block_that_is_cancelled_while_it_closes_its_client_ends_as_cancelled() -> None:
    opened, closing, released = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Connection]:
        opened.set()
        await until_cancelled(closing, released)
        yield Connection()

    async def use_client() -> None:
        async with RpcClient(connect):
            await opened.wait()

    block = asyncio.create_task(use_client())
    await closing.wait()
    block.cancel()
    await asyncio.wait({block})
    released.set()
    assert block.cancelled()


async def test_a_client_that_closes_while_it_cleans_up_a_connection_opens_no_other() -> None:
    connection, opened = Connection(), 0

    @asynccontextmanager
    async def connect() -> AsyncGenerator[Connection]:
        nonlocal opened
        opened += 1
        if opened > 1:
            raise ConnectionRefused("once is enough")
        yield connection

    async def use_client() -> None:
        client = RpcClient(connect)
        async with client.follow("talk"), client:
            await connection.cleaning.wait()

    block = asyncio.create_task(use_client())
    await connection.cleaning.wait()
    await asyncio.sleep(0)
    connection.released.set()
    await block
    assert opened == 1


async def test_an_error_of_the_connection_is_raised_where_the_client_closes() -> None:
    @asynccontextmanager
    async def connect() -> AsyncGenerator[Connection]:
        yield Connection()
        raise AssertionError

    def fail(_: bool | None) -> None:
        raise ZeroDivisionError

    client = RpcClient(connect, on_change=fail)
    with pytest.raises(ZeroDivisionError):
        async with client:
            await asyncio.sleep(0)
