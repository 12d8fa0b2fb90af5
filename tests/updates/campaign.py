"""Random updates through a running gateway: each becomes a message that was answered, or a line."""

from __future__ import annotations

import json
import random
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import ModelResponse, TextPart
from structlog.testing import capture_logs

from clew.core.channel_events import IgnoredEvent
from clew.core.health import ChannelState
from clew.gateway.channels.discord import codec as discord_codec
from clew.gateway.channels.slack import codec as slack_codec
from clew.gateway.channels.telegram import codec as telegram_codec
from clew.testing.discord import FakeDiscord
from clew.testing.slack import FakeSlack
from clew.testing.telegram import FakeTelegram
from clew.testing.webhook import FakeWebhook
from tests.channels.desk import serving, table
from tests.integration.api_server import serving as serving_http
from tests.integration.api_server import settings_for
from tests.updates import discord, slack, telegram, webhook
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from clew.store.contract import Tx
    from tests.line.world import World
    from tests.updates.made import Json, Made

#: Seconds in which everything must be answered.
PATIENCE = 900.0


@dataclass(frozen=True, kw_only=True)
class Platform:
    """A fake platform that is told what was made."""

    settings: dict[str, object]
    make: Callable[[random.Random, int], Made]
    #: Has it happen; the platform's id of the message that it is about.
    happen: Callable[[Made], str]
    #: The event that the channel ignores, if it does.
    passed: Callable[[Made], IgnoredEvent | None]
    waiting: Callable[[], int]
    serve: Callable[[str], None] = lambda _: None


@dataclass
class Found:
    """Outcome of the updates."""

    updates: int = 0
    kinds: set[str] = field(default_factory=set[str])
    turns: int = 0
    logged: int = 0
    wrong: list[str] = field(default_factory=list[str])


def answer(messages: Sequence[ModelMessage]) -> ModelResponse:
    return ModelResponse(parts=[TextPart("ok")])


def _ignored(found: object) -> IgnoredEvent | None:
    return found if isinstance(found, IgnoredEvent) else None


def on_telegram(fake: FakeTelegram) -> Platform:
    me = telegram_codec.TelegramIdentity(id=fake.bot_id, username=fake.username)

    def happen(made: Made) -> str:
        ((kind, content),) = made.update.items()
        fake.send_update(kind, content)
        return str(content.get("message_id", ""))

    return Platform(
        settings={"token": fake.token, "base_url": fake.base_url},
        make=telegram.make,
        happen=happen,
        passed=lambda made: _ignored(telegram_codec.parse_update(made.update, me)),
        waiting=lambda: fake.pending_count,
    )


def on_discord(fake: FakeDiscord) -> Platform:
    me = discord_codec.DiscordIdentity(id=discord.BOT, roles=frozenset({discord.ROLE}))

    def happen(made: Made) -> str:
        content: Json = made.update["d"]
        fake.open_dm(content["channel_id"].removeprefix("7"))
        fake.send_dispatch(made.update["t"], content)
        return content["id"]

    return Platform(
        settings={"token": fake.token, "base_url": fake.api_url},
        make=discord.make,
        happen=happen,
        passed=lambda made: _ignored(discord_codec.parse_dispatch(made.update, me, {})),
        waiting=lambda: fake.pending_count,
    )


def on_slack(fake: FakeSlack) -> Platform:
    me = slack_codec.SlackIdentity(user=slack.ME)
    fake.set_group(slack.GROUP, [slack.ME])

    def happen(made: Made) -> str:
        payload: Json = made.update["payload"]
        event: Json = payload.get("event") or {}
        if not event:
            fake.send_envelope(made.update["type"], payload)
            return ""
        inner: Json = event.get("message") or event
        fake.open_dm(f"U{event['channel'].removeprefix('D')}")
        fake.send_event(event)
        return inner["ts"]

    return Platform(
        settings={"token": fake.token, "app_token": fake.app_token, "base_url": fake.api_url},
        make=slack.make,
        happen=happen,
        passed=lambda made: _ignored(slack_codec.parse_envelope(made.update, me)),
        waiting=lambda: fake.pending_count,
    )


def on_webhook(fake: FakeWebhook) -> Platform:
    def happen(made: Made) -> str:
        id_ = fake.add_event(made.update["type"], made.update["data"])
        return made.update["data"].get("message", id_)

    return Platform(
        settings={"secret": fake.secret, "base_url": fake.answers_url},
        make=webhook.make,
        happen=happen,
        passed=lambda made: None,
        waiting=lambda: fake.pending_count,
        serve=lambda url: fake.set_target(f"{url}/hooks/webhook"),
    )


PLATFORMS: dict[str, tuple[Callable[[], Any], Callable[[Any], Platform]]] = {
    "telegram": (FakeTelegram, on_telegram),
    "discord": (FakeDiscord, on_discord),
    "slack": (FakeSlack, on_slack),
    "webhook": (FakeWebhook, on_webhook),
}


@asynccontextmanager
async def _running(name: str, platform: Platform, url: str, home: Path) -> AsyncGenerator[World]:
    rules = {"allow": "*", "groups": "*", "mention": False, "stream": False, "double_text": "queue"}
    flags = table(name, {**platform.settings, **rules})
    async with (
        serving(url, home, flags, script=answer) as world,
        serving_http(world.engine, settings_for(home)) as http,
    ):
        platform.serve(http)
        yield world


async def campaign(name: str, url: str, home: Path, *, updates: int, seed: int = 0) -> Found:
    """Have updates happen on a platform, and say what became of them."""
    begin, there = PLATFORMS[name]
    found = Found(updates=updates)
    made: dict[str, Made] = {}
    with capture_logs() as logs, begin() as fake:
        platform = there(fake)
        async with _running(name, platform, url, home) as world:
            health = world.engine.channels
            await wait_until(
                lambda: name in health and health[name].state is ChannelState.CONNECTED
            )
            every = [platform.make(random.Random(f"{seed} {n}"), n) for n in range(updates)]
            for number, one in enumerate(every):
                found.kinds.add(one.kind.partition(",")[0])
                made[platform.happen(one) or f"no message {number}"] = one
            await _quiet(platform, world)
            inputs = await world.store.inner.read(_inputs)
            found.wrong += await world.check()
    for message, one in made.items():
        _judge(found, one, platform, inputs.get(message), logs)
    return found


async def _quiet(platform: Platform, world: World) -> None:
    async def still() -> bool:
        if platform.waiting():
            return False
        gauges = (await world.engine.metrics.take_snapshot()).gauges
        if gauges.waiting or gauges.unfinished:
            return False
        return not await world.engine.deliveries.list_undelivered_routes()

    await wait_until(still, "every update is answered", seconds=PATIENCE, pause=0.2)


Row = tuple[str, str, str | None]


def _inputs(t: Tx) -> dict[str, Row]:
    """Return the messages by the platform's id: kind, text, outcome."""
    rows = t.fetch_all("SELECT payload, kind, text, outcome FROM inbox")
    return {json.loads(row[0]).get("message", ""): (row[1], row[2], row[3]) for row in rows}


def _judge(
    found: Found, made: Made, platform: Platform, row: Row | None, logs: Sequence[Any]
) -> None:
    if row is None:
        if _is_logged(made, platform, logs):
            found.logged += 1
        else:
            found.wrong.append(f"{made.kind}: no turn, no line, no log entry")
        return
    kind, text, outcome = row
    found.turns += 1
    if made.ignored or kind != "message" or outcome != "turn":
        found.wrong.append(f"{made.kind}: became {kind} with outcome {outcome}")
    found.wrong += [f"{made.kind}: {complaint}" for complaint in made.misplaced(text)]


def _is_logged(made: Made, platform: Platform, logs: Sequence[Any]) -> bool:
    passed = platform.passed(made)
    if passed is None:
        # A deletion of what was never heard.
        return made.kind == "deleted" and any(one["event"] == "change_passed_over" for one in logs)
    return any(one["event"] == "passed_over" and one["kind"] == passed.kind for one in logs)
