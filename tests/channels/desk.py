"""A desk: an engine with a scripted model, a gateway, and a fake Telegram to talk to them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic_ai.messages import ModelResponse, TextPart, UserPromptPart

from clew.config import load
from clew.gateway.gateway import Gateway
from clew.testing.telegram import FakeTelegram
from tests.line.world import open_world

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from clew.gateway.timer import Timer
    from clew.testing.telegram import Faults
    from tests.line.world import World

#: Seconds that anything may take before a test gives up on it.
PATIENCE = 40.0


async def until(true: Callable[[], object]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(PATIENCE):
        while not true():  # noqa: ASYNC110  (nothing tells)
            await asyncio.sleep(0.01)


def echo(messages: Sequence[ModelMessage]) -> ModelResponse:
    """Answers with what was said since the last answer."""
    said: list[str] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            said = []
            continue
        said += [
            part.content
            for part in message.parts
            if isinstance(part, UserPromptPart) and isinstance(part.content, str)
        ]
    return ModelResponse(parts=[TextPart(f"You said: {' | '.join(said)}")])


@dataclass(frozen=True, kw_only=True)
class Desk:
    world: World
    telegram: FakeTelegram

    def texts(self, chat: int = 42) -> list[str]:
        return self.telegram.texts(chat)

    async def answered(self, count: int = 1, chat: int = 42) -> list[str]:
        """What the bot has written in a chat, once there is so much and it is no preview."""

        def there() -> bool:
            texts = self.texts(chat)
            return len(texts) >= count and not any(text.endswith(" …") for text in texts)

        await until(there)
        return self.texts(chat)

    async def quiet(self) -> None:
        """Wait until all that was told is stored, answered and delivered."""
        await until(lambda: self.telegram.waiting == 0)
        await self.world.engine.idle()

        async def delivered() -> bool:
            return not await self.world.engine.deliveries.undelivered()

        await self.world.until(delivered)


def channel_settings(telegram: FakeTelegram, **more: object) -> dict[str, object]:
    """The settings of the channel, by ``section.key``."""
    own = {"token": telegram.token, "base_url": telegram.base_url, "allow": "42", **more}
    return {f"channels.telegram.{name}": value for name, value in own.items()}


@asynccontextmanager
async def open_desk(
    url: str,
    home: Path,
    telegram: FakeTelegram,
    *,
    script: Callable[[Sequence[ModelMessage]], ModelResponse] | None = echo,
    timer: Timer | None = None,
    **settings: object,
) -> AsyncGenerator[Desk]:
    """A gateway that serves; what the channel's table holds beside the token is in ``settings``."""
    flags = {
        "model.name": "openai-chat:none",
        "model.base_url": "http://127.0.0.1:9/v1",
        **channel_settings(telegram, **settings),
    }
    loaded = load(home=home, flags=flags, environ={})
    async with open_world(url, home) as world:
        if script is not None:
            world.model.script = script
        async with Gateway(world.engine, loaded, timer=timer):
            yield Desk(world=world, telegram=telegram)


@asynccontextmanager
async def telegram_desk(
    url: str, home: Path, *, faults: Faults | None = None, **settings: object
) -> AsyncGenerator[Desk]:
    """As ``open_desk``, with a Telegram of its own."""
    with FakeTelegram(faults=faults) as telegram:
        async with open_desk(url, home, telegram, **settings) as desk:  # pyright: ignore[reportArgumentType]
            yield desk
