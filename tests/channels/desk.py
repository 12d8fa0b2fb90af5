"""Desks: an engine with a scripted model, a gateway, and a fake platform to talk to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)

from clew.agent.messages import extract_text
from clew.config import load_settings
from clew.gateway.gateway import Gateway
from clew.testing.channels import FakeTimer
from clew.testing.telegram import FakeTelegram
from tests.line.world import open_world
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from clew.gateway.channel import ChannelFactory
    from clew.gateway.timer import Timer
    from clew.testing.channels import MemoryPlatform
    from clew.testing.telegram import FaultInjector
    from tests.line.world import World


async def until(true: Callable[[], object]) -> None:
    """Wait until something is so."""
    await wait_until(true)


def echo(messages: Sequence[ModelMessage]) -> ModelResponse:
    """Answers with what was said since the last answer."""
    said: list[str] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            said = []
            continue
        said += [
            extract_text(ModelRequest(parts=[part]))
            for part in message.parts
            if isinstance(part, UserPromptPart)
        ]
    return ModelResponse(parts=[TextPart(f"You said: {' | '.join(said)}")])


class Plain:
    """Interface of every desk."""

    world: World

    def texts(self, chat: int = 42) -> list[str]:
        """Return the messages of the agent in a chat, as they are shown now."""
        raise NotImplementedError

    def waiting(self) -> int:
        """Events that were not acknowledged."""
        raise NotImplementedError

    def pass_time(self) -> None:
        """Let a moment pass on a clock that would stand still: somebody may sleep by it."""

    async def answered(self, count: int = 1, chat: int = 42) -> list[str]:
        """Return the messages of the agent in a chat, once enough are final."""

        def there() -> bool:
            texts = self.texts(chat)
            return len(texts) >= count and not any(text.endswith(" …") for text in texts)

        await until(there)
        return self.texts(chat)

    async def quiet(self) -> None:
        """Wait until all that was told is stored, answered and delivered."""
        await until(lambda: self.waiting() == 0)

        async def still() -> bool:
            self.pass_time()
            await self.world.engine.wait_until_idle()
            gauges = (await self.world.engine.metrics.take_snapshot()).gauges
            if gauges.waiting or gauges.unfinished:
                return False
            return not await self.world.engine.deliveries.list_undelivered_routes()

        await self.world.until(still)


@dataclass(frozen=True, kw_only=True)
class Desk(Plain):
    """On Telegram."""

    world: World
    telegram: FakeTelegram

    def texts(self, chat: int = 42) -> list[str]:
        return self.telegram.list_texts(chat)

    def waiting(self) -> int:
        return self.telegram.pending_count


@dataclass(frozen=True, kw_only=True)
class MemoryDesk(Plain):
    """On a platform in memory."""

    world: World
    platform: MemoryPlatform
    timer: Timer | None

    def pass_time(self) -> None:
        if isinstance(self.timer, FakeTimer):
            self.timer.advance(1)

    def texts(self, chat: int = 42) -> list[str]:
        return self.platform.list_texts(str(chat))

    def waiting(self) -> int:
        return len(self.platform.pending_events)


_MODEL = {"model.name": "openai-chat:none", "model.base_url": "http://127.0.0.1:9/v1"}

Script = Callable[[Sequence[ModelMessage]], ModelResponse]


def table(name: str, settings: Mapping[str, object]) -> dict[str, object]:
    """The settings of a channel, by ``section.key``."""
    return {f"channels.{name}.{key}": value for key, value in settings.items()}


@asynccontextmanager
async def serving(
    url: str,
    home: Path,
    flags: Mapping[str, object],
    *,
    script: Script | None,
    timer: Timer | None = None,
    factories: Mapping[str, ChannelFactory] | None = None,
) -> AsyncGenerator[World]:
    """A gateway that serves."""
    loaded = load_settings(home=home, flags={**_MODEL, **flags}, environ={})
    async with open_world(url, home) as world:
        if script is not None:
            world.model.script = script
        async with Gateway(world.engine, loaded, timer=timer, factories=factories):
            yield world


@asynccontextmanager
async def open_desk(
    url: str,
    home: Path,
    telegram: FakeTelegram,
    *,
    script: Script | None = echo,
    settings: Mapping[str, object] = MappingProxyType({}),
    flags: Mapping[str, object] = MappingProxyType({}),
) -> AsyncGenerator[Desk]:
    """A gateway on a Telegram; by default the person 42 is let in."""
    own = {"token": telegram.token, "base_url": telegram.base_url, "allow": "42", **settings}
    flags = {**table("telegram", own), **flags}
    async with serving(url, home, flags, script=script) as world:
        yield Desk(world=world, telegram=telegram)


@asynccontextmanager
async def telegram_desk(
    url: str,
    home: Path,
    *,
    faults: FaultInjector | None = None,
    script: Script | None = echo,
    settings: Mapping[str, object] = MappingProxyType({}),
) -> AsyncGenerator[Desk]:
    """As ``open_desk``, with a Telegram of its own."""
    with FakeTelegram(faults=faults) as telegram:
        async with open_desk(url, home, telegram, script=script, settings=settings) as desk:
            yield desk


@asynccontextmanager
async def memory_desk(
    url: str,
    home: Path,
    platform: MemoryPlatform,
    *,
    script: Script | None = echo,
    timer: Timer | None = None,
    settings: Mapping[str, object] = MappingProxyType({}),
    flags: Mapping[str, object] = MappingProxyType({}),
) -> AsyncGenerator[MemoryDesk]:
    """A gateway on a platform in memory; by default everybody is let in."""
    async with serving(
        url,
        home,
        {**table("memory", {"allow": "*", **settings}), **flags},
        script=script,
        timer=timer,
        factories={"memory": lambda _: platform.create_channel()},
    ) as world:
        yield MemoryDesk(world=world, platform=platform, timer=timer)
