"""Connections and previews that are cancelled while they close end as cancelled."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from clew.core.route import Route
from clew.gateway.channels.discord.gateway_connection import GatewayConnection
from clew.gateway.channels.slack.socket_mode import SocketModeConnection
from clew.gateway.preview_streamer import PreviewStreamer
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from clew.core.inbox import AcceptResult
    from clew.engine.engine import Engine
    from clew.gateway.platform_client import PlatformClient
    from clew.gateway.previews import PreviewRegistry

_HELLO = {"op": 10, "d": {"heartbeat_interval": 600_000}}
_READY = {"op": 0, "t": "READY", "s": 1, "d": {"session_id": "1"}}


class SlowToEnd:
    """Work without an end, which takes its time to clean up."""

    def __init__(self) -> None:
        self.begun, self.cleaning, self.released = (asyncio.Event() for _ in range(3))

    async def run(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cleaning.set()
            await self.released.wait()


class Socket:
    """A WebSocket whose reader is slow to end."""

    def __init__(self, *frames: object) -> None:
        self._frames, self.reading = frames, SlowToEnd()

    async def __aiter__(self) -> AsyncIterator[str]:
        for frame in self._frames:
            yield json.dumps(frame)
        await self.reading.run()

    async def send(self, frame: str) -> None:
        """Accept a frame."""

    async def close(self, code: int = 1000) -> None:
        """Close at once."""


def connect(platform: str) -> tuple[AbstractAsyncContextManager[object], Socket]:
    if platform == "slack":
        return SocketModeConnection("wss://slack"), Socket()
    connection = GatewayConnection(url="wss://discord", token="x", session=None)
    return connection, Socket(_HELLO, _READY)


@pytest.mark.parametrize("platform", ["discord", "slack"])
async def test_a_connection_that_is_cancelled_while_it_closes_ends_as_cancelled(
    platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, socket = connect(platform)

    async def open_websocket(*_: object, **__: object) -> Socket:
        return socket

    module = type(connection).__module__
    monkeypatch.setattr(f"{module}.open_websocket", open_websocket)

    async def use_connection() -> None:
        async with connection:
            await socket.reading.begun.wait()

    using = asyncio.create_task(use_connection())
    await socket.reading.cleaning.wait()
    using.cancel()
    await asyncio.wait({using})
    socket.reading.released.set()
    assert using.cancelled()


class SlowTimer(SlowToEnd):
    """A timer whose sleepers are slow to end."""

    def monotonic(self) -> float:
        return 0.0

    def epoch_millis(self) -> int:
        return 0

    async def sleep(self, seconds: float) -> None:
        await self.run()


class Answers:
    """An engine that has answered every input."""

    def __init__(self) -> None:
        self.shown: list[object] = []

    async def stream_input(self, accepted: object, *, live: bool) -> AsyncGenerator[Any]:
        self.shown.append(accepted)
        await asyncio.sleep(0)
        for event in ():
            yield event


async def test_a_preview_that_is_cancelled_while_it_ends_shows_no_further_input() -> None:
    engine, timer = Answers(), SlowTimer()
    streamer = PreviewStreamer(
        cast("Engine", engine),
        cast("PlatformClient", None),
        cast("PreviewRegistry", None),
        timer,
        stream=False,
    )
    route = Route(platform="memory", kind="dm", chat="42")
    for accepted in ("first", "second"):
        streamer.follow_input(route, cast("AcceptResult", accepted), message="1")
    await timer.cleaning.wait()
    closing = asyncio.create_task(streamer.close())
    await wait_until(lambda: closing.done() or len(engine.shown) > 1)
    timer.released.set()
    await closing
    assert engine.shown == ["first"]
