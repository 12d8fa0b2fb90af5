"""A channel that cannot be connected is told of, tried again, and heard as soon as it can be."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import httpx2
import pytest

from clew.config import load
from clew.core.health import ChannelState
from clew.errors import NotSent
from clew.gateway import supervision
from clew.gateway.gateway import Gateway
from clew.testing.channels import FakeTimer, MemoryPlatform
from clew.testing.channels.memory import MemoryChannel
from tests.channels.desk import MemoryDesk, memory_desk, table, until
from tests.integration.api_server import serving as serving_http
from tests.integration.api_server import settings_for
from tests.integration.test_deliveries import passes, stop_at

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from clew.gateway.channel import Factory


@dataclass(kw_only=True)
class Closed(MemoryPlatform):
    """A platform that lets nobody in before it is open."""

    meets: Callable[[], Awaitable[None]]
    tries: list[float] = field(default_factory=list[float])

    def channel(self) -> MemoryChannel:
        return _AtADoor(self)


class _AtADoor(MemoryChannel):
    def __init__(self, platform: Closed) -> None:
        super().__init__(platform)
        self._there = platform

    async def __aenter__(self) -> Self:
        self._there.tries.append(self._there.timer.monotonic())
        await self._there.meets()
        return await super().__aenter__()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/clew.db"


def _state(desk: MemoryDesk) -> ChannelState:
    return desk.world.engine.channels["memory"].state


async def test_b151_without_a_network_for_ten_minutes_the_gateway_stays_up_and_recovers(
    url: str, tmp_path: Path
) -> None:
    timer = FakeTimer()
    opens = timer.monotonic() + 600

    async def no_network() -> None:
        if timer.monotonic() < opens:
            raise NotSent("the network is unreachable")

    platform = Closed(meets=no_network, timer=timer)
    async with memory_desk(url, tmp_path, platform, timer=timer) as desk:
        platform.say("hello")
        await passes(timer, 5, until_=lambda: timer.monotonic() >= opens - 5)
        assert _state(desk) is ChannelState.DEGRADED
        assert "unreachable" in (desk.world.engine.channels["memory"].error or "")
        # Not every second for ten minutes, and not once an hour.
        assert 5 < len(platform.tries) < 20
        await passes(timer, 5, until_=lambda: _state(desk) is ChannelState.CONNECTED)
        assert await desk.answered() == ["You said: hello"]
        await passes(timer, 1, until_=lambda: not platform.waiting)


async def test_b157_a_connect_that_hangs_and_cannot_be_cancelled_is_replaced(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "CONNECT", 0.05)
    monkeypatch.setattr(supervision, "_GRACE", 0.05)
    monkeypatch.setattr(supervision, "FIRST_PAUSE", 0.05)
    network, over = asyncio.Event(), asyncio.Event()

    async def hang() -> None:
        while not network.is_set() and not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    platform = Closed(meets=hang)
    async with memory_desk(url, tmp_path, platform) as desk:
        platform.say("hello")
        await until(lambda: _state(desk) is ChannelState.DEGRADED)
        assert "did not connect" in (desk.world.engine.channels["memory"].error or "")
        network.set()
        assert await desk.answered() == ["You said: hello"]
        assert _state(desk) is ChannelState.CONNECTED
        over.set()


async def test_b158_a_channel_that_is_stopped_and_started_fifty_times_hears_each_time(
    url: str, tmp_path: Path
) -> None:
    platform = MemoryPlatform()
    flags = table("memory", {"allow": "*", "stream": False, "double_text": "queue"})
    settings = load(home=tmp_path, flags=flags, environ={})
    async with memory_desk(url, tmp_path, platform, settings={"enabled": False}) as desk:
        factories: dict[str, Factory] = {"memory": lambda _: platform.channel()}
        for number in range(50):
            async with Gateway(desk.world.engine, settings, factories=factories):
                platform.say(f"{number}")
                await until(lambda number=number: len(desk.texts()) == number + 1)
                await until(lambda: not platform.waiting)
        assert desk.texts() == [f"You said: {number}" for number in range(50)]


async def test_b150_while_an_answer_takes_its_time_the_gateway_says_that_it_is_well(
    url: str, tmp_path: Path
) -> None:
    """Health is of the process, not of how soon a turn ends."""
    platform, go_on = MemoryPlatform(), asyncio.Event()
    async with (
        memory_desk(url, tmp_path, platform) as desk,
        serving_http(desk.world.engine, settings_for(tmp_path)) as http,
        httpx2.AsyncClient() as watchdog,
    ):
        stop_at(desk, "said:", go_on)
        platform.say("hello")
        await until(lambda: "piece 'said:'" in desk.world.points.names)
        for path in ("/healthz", "/readyz"):
            assert (await watchdog.get(f"{http}{path}")).status_code == 200
        go_on.set()
        assert await desk.answered() == ["You said: hello"]
