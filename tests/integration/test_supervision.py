"""A channel that cannot be connected is told of, tried again, and heard as soon as it can be."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import httpx2
import pytest
import structlog

from clew.cli.doctor_checks.channels import check_channels, check_deliveries
from clew.config import load_settings
from clew.core.doctor_finding import FindingLevel
from clew.core.health import ChannelState
from clew.errors import NotSent
from clew.gateway import supervisor
from clew.gateway.gateway import Gateway
from clew.testing.channels import FakeTimer, MemoryPlatform
from clew.testing.channels.memory import MemoryChannel
from tests.channels.desk import MemoryDesk, memory_desk, table, until
from tests.integration.api_server import serving as serving_http
from tests.integration.api_server import settings_for
from tests.integration.test_deliveries import passes, stop_at

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping, Sequence
    from pathlib import Path

    from clew.config import Settings
    from clew.core.route import Route
    from clew.gateway.channel import Channel, ChannelConfig, ChannelFactory


@dataclass(kw_only=True)
class Closed(MemoryPlatform):
    """A platform that lets nobody in before it is open."""

    meets: Callable[[], Awaitable[None]]
    tries: list[float] = field(default_factory=list[float])

    def create_channel(self) -> MemoryChannel:
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
    seen: list[ChannelState] = []

    async def no_network() -> None:
        seen.append(_state(desk))
        if timer.monotonic() < opens:
            raise NotSent("the network is unreachable")

    platform = Closed(meets=no_network, timer=timer)
    async with memory_desk(url, tmp_path, platform, timer=timer) as desk:
        platform.post_message("hello")
        await passes(timer, 5, until_=lambda: timer.monotonic() >= opens - 5)
        assert _state(desk) is ChannelState.DEGRADED
        # Operators see the reason also while it is tried again.
        assert {*seen[1:]} == {ChannelState.DEGRADED}
        assert "unreachable" in (desk.world.engine.channels["memory"].error or "")
        # Not every second for ten minutes, and not once an hour.
        assert 5 < len(platform.tries) < 20
        await passes(timer, 5, until_=lambda: _state(desk) is ChannelState.CONNECTED)
        assert await desk.answered() == ["You said: hello"]
        await passes(timer, 1, until_=lambda: not platform.pending_events)


async def test_b157_a_connect_that_hangs_and_cannot_be_cancelled_is_replaced(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "CONNECT_TIMEOUT", 0.05)
    monkeypatch.setattr(supervisor, "_CANCEL_GRACE", 0.05)
    monkeypatch.setattr(supervisor, "FIRST_PAUSE", 0.05)
    network, over = asyncio.Event(), asyncio.Event()

    async def hang() -> None:
        while not network.is_set() and not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    platform = Closed(meets=hang)
    async with memory_desk(url, tmp_path, platform) as desk:
        platform.post_message("hello")
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
    settings = load_settings(home=tmp_path, flags=flags, environ={})
    async with memory_desk(url, tmp_path, platform, settings={"enabled": False}) as desk:
        factories: dict[str, ChannelFactory] = {"memory": lambda _: platform.create_channel()}
        for number in range(50):
            async with Gateway(desk.world.engine, settings, factories=factories):
                platform.post_message(f"{number}")
                await until(lambda number=number: len(desk.texts()) == number + 1)
                await until(lambda: not platform.pending_events)
        assert desk.texts() == [f"You said: {number}" for number in range(50)]


async def test_b150_while_an_answer_takes_its_time_the_gateway_says_that_it_is_well(
    url: str, tmp_path: Path
) -> None:
    """Health is of the process, not of how soon a turn ends."""
    platform, go_on = MemoryPlatform(), asyncio.Event()
    async with (
        memory_desk(url, tmp_path, platform) as desk,
        serving_http(desk.world.engine, settings_for(tmp_path, token=None)) as http,
        httpx2.AsyncClient(timeout=60) as watchdog,
    ):
        stop_at(desk, "said:", go_on)
        platform.post_message("hello")
        await until(lambda: "piece 'said:'" in desk.world.points.names)
        for path in ("/healthz", "/readyz"):
            assert (await watchdog.get(f"{http}{path}")).status_code == 200
        go_on.set()
        assert await desk.answered() == ["You said: hello"]


# Deliveries that fail


class _Refusing(MemoryChannel):
    """Says of each message that it did not arrive."""

    broken = True

    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        if self.broken:
            raise NotSent("no way through")
        return await super().send(route, chunk, key=key)


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> MemoryPlatform:
    def channel(platform: MemoryPlatform) -> MemoryChannel:
        return _Refusing(platform)

    monkeypatch.setattr(_Refusing, "broken", True)
    monkeypatch.setattr(MemoryPlatform, "create_channel", channel)
    return MemoryPlatform(timer=FakeTimer())


def _told(logs: Sequence[MutableMapping[str, object]], event: str) -> list[object]:
    return [one["log_level"] for one in logs if one["event"] == event]


@pytest.mark.parametrize(
    "limit", [{"alarm_failures": 3}, {"alarm_failures": 1000, "alarm_after": "1ms"}]
)
async def test_failing_deliveries_are_logged_once_and_shown_on_request(
    store_url: str, tmp_path: Path, refusing: MemoryPlatform, limit: dict[str, object]
) -> None:
    timer = refusing.timer
    assert isinstance(timer, FakeTimer)
    settings = {"stream": False, **limit}
    with structlog.testing.capture_logs() as logs:
        async with (
            memory_desk(store_url, tmp_path, refusing, timer=timer, settings=settings) as desk,
            serving_http(desk.world.engine, settings_for(tmp_path, token=None)) as http,
            httpx2.AsyncClient(timeout=60) as watchdog,
        ):
            health = desk.world.engine.channels
            before = (await watchdog.get(f"{http}/readyz")).json()
            assert before["status"] == "ok"
            refusing.post_message("hello")
            await passes(timer, 5, until_=lambda: health["memory"].deliveries.failing)
            await passes(timer, 5, until_=lambda: health["memory"].deliveries.failed > 6)
            answer = await watchdog.get(f"{http}/readyz")
            # Other processes may be as well off: nobody is to be sent away from this one.
            assert answer.status_code == 200
            told = answer.json()
            assert told["status"] == "degraded"
            assert told["channels"]["memory"]["deliveries"]["failing"] is True
            metrics = (await watchdog.get(f"{http}/metrics")).text
            assert 'clew_deliveries_failing{channel="memory"} 1' in metrics
            assert 'clew_deliveries_waiting{channel="memory"} 1' in metrics
            (found,) = [
                each
                for each in await check_deliveries(desk.world.store, load_for(tmp_path, settings))
                if each.what == "deliveries"
            ]
            assert found.level is FindingLevel.WARN
            assert "no way through" in found.detail
            _Refusing.broken = False
            await passes(timer, 5, until_=desk.texts)
            await passes(timer, 5, until_=lambda: not health["memory"].deliveries.failing)
            assert (await watchdog.get(f"{http}/readyz")).json()["status"] == "ok"
    assert _told(logs, "deliveries_failing") == ["error"]
    assert _told(logs, "deliveries_recovered") == ["info"]


def load_for(home: Path, settings: dict[str, object]) -> Settings:
    return load_settings(home=home, flags=table("memory", {"allow": "*", **settings}), environ={})


async def test_a_channel_that_cannot_be_loaded_is_refused_and_told_of_once(
    url: str, tmp_path: Path
) -> None:
    timer, tries = FakeTimer(), 0

    def broken(_: ChannelConfig) -> Channel:
        nonlocal tries
        tries += 1
        raise AttributeError("module 'mine' has no attribute 'open_channel'")

    settings = load_for(tmp_path, {})
    with structlog.testing.capture_logs() as logs:
        async with (
            memory_desk(url, tmp_path, MemoryPlatform(), settings={"enabled": False}) as desk,
            Gateway(desk.world.engine, settings, factories={"memory": broken}, timer=timer),
            serving_http(desk.world.engine, settings_for(tmp_path, token=None)) as http,
            httpx2.AsyncClient(timeout=60) as watchdog,
        ):
            await passes(timer, 60, until_=lambda: tries > 3)
            assert _state(desk) is ChannelState.REFUSED
            told = (await watchdog.get(f"{http}/readyz")).json()
            assert (told["status"], told["channels"]["memory"]["state"]) == ("degraded", "refused")
    assert _told(logs, "channel_down").count("warning") == 1
    assert _told(logs, "channel_not_loaded") == ["error"]


@pytest.mark.parametrize(
    ("settings", "detail"),
    [
        ({"channels.telegram.token": "nonsense"}, "channels.telegram.token"),
        ({"channels.nowhere.kind": "nowhere"}, "nowhere"),
        ({"channels.webhook.base_url": "http://127.0.0.1:9"}, "channels.webhook.secret"),
    ],
)
def test_the_doctor_finds_a_channel_that_cannot_be_made(
    tmp_path: Path, settings: dict[str, object], detail: str
) -> None:
    loaded = load_settings(home=tmp_path, flags=settings, environ={})
    (found,) = check_channels(loaded)
    assert found.level is FindingLevel.FAIL
    assert detail in found.detail
