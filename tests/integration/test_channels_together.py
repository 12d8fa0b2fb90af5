"""Every platform at once: what befalls one is nothing to the others."""

from __future__ import annotations

from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from clew.core.channel_events import OutboundMessage
from clew.core.health import ChannelState
from clew.errors import Throttled
from clew.testing.discord import FakeDiscord
from clew.testing.slack import FakeSlack
from clew.testing.telegram import FakeTelegram
from clew.testing.webhook import FakeWebhook
from tests.channels.desk import echo, serving, table, until
from tests.integration.api_server import serving as serving_http
from tests.integration.api_server import settings_for
from tests.integration.test_discord_contract import Discord
from tests.integration.test_slack_contract import Slack
from tests.integration.test_webhook_contract import Webhook

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
    from pathlib import Path

    from clew.testing.channels import ChannelPlatform
    from tests.line.world import World


class Together:
    """A person with the id 42 on four platforms."""

    def __init__(self, stack: ExitStack) -> None:
        self.telegram = stack.enter_context(FakeTelegram())
        self.slack = stack.enter_context(FakeSlack())
        self.discord = stack.enter_context(FakeDiscord())
        self.webhook = stack.enter_context(FakeWebhook())

    def flags(self) -> Mapping[str, object]:
        telegram, slack, discord, webhook = self.telegram, self.slack, self.discord, self.webhook
        return {
            **table("telegram", {"token": telegram.token, "base_url": telegram.base_url}),
            **table("slack", {"token": slack.token, "app_token": slack.app_token}),
            **table("slack", {"base_url": slack.api_url}),
            **table("discord", {"token": discord.token, "base_url": discord.api_url}),
            **table("webhook", {"secret": webhook.secret, "base_url": webhook.answers_url}),
            **{
                f"channels.{name}.allow": "*"
                for name in ("telegram", "slack", "discord", "webhook")
            },
            # Nobody is there.
            **table(
                "away", {"kind": "telegram", "token": "9:x", "base_url": "http://127.0.0.1:9/bot"}
            ),
            # Nothing of it can be used.
            **table("broken", {"kind": "discord", "token": "nonsense"}),
            **table("unknown", {"kind": "carrier-pigeon"}),
        }

    def say(self, text: str) -> None:
        self.telegram.post_message(text)
        self.slack.post_message(text)
        self.discord.post_message(text)
        self.webhook.post_message(text)

    def texts(self) -> Mapping[str, list[str]]:
        return {
            "telegram": self.telegram.list_texts(42),
            "slack": self.slack.list_texts("D42"),
            "discord": self.discord.list_texts("742"),
            "webhook": self.webhook.list_texts("42"),
        }


@asynccontextmanager
async def running(url: str, home: Path, there: Together) -> AsyncGenerator[World]:
    flags = {**there.flags(), **{f"channels.{name}.stream": False for name in there.texts()}}
    async with (
        serving(url, home, flags, script=echo) as world,
        serving_http(world.engine, settings_for(home)) as http,
    ):
        there.webhook.set_target(f"{http}/hooks/webhook")
        health = world.engine.channels
        await until(
            lambda: all(health[name].state is ChannelState.CONNECTED for name in there.texts())
        )
        yield world
        assert await world.check() == []


async def test_b156_a_channel_that_fails_or_loses_its_network_takes_no_other_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing that is said of all this holds a secret."""
    with ExitStack() as stack:
        there = Together(stack)
        async with running(f"sqlite:///{tmp_path}/clew.db", tmp_path, there) as world:
            health = world.engine.channels
            there.say("one")
            await until(lambda: all(len(texts) == 1 for texts in there.texts().values()))
            await until(lambda: health["away"].state is ChannelState.DEGRADED)
            assert health["broken"].state is ChannelState.REFUSED
            assert "installed are discord" in (health["unknown"].error or "")
            # Slack is gone, Discord refuses everything for a while.
            there.slack.__exit__(None, None, None)
            there.discord.throttle_all(1000)
            there.telegram.post_message("two")
            there.webhook.post_message("two")
            await until(lambda: len(there.texts()["telegram"]) == 2)
            await until(lambda: len(there.texts()["webhook"]) == 2)
            await until(lambda: health["slack"].state is ChannelState.DEGRADED)
            assert health["telegram"].state is ChannelState.CONNECTED
            # It comes back, and with it what was said meanwhile.
            there.slack.__enter__()
            there.slack.post_message("two")
            await until(lambda: len(there.texts()["slack"]) == 2)
            assert set(map(tuple, there.texts().values())) == {
                ("You said: one", "You said: two"),
                ("You said: one",),
            }
            told = "".join([*capsys.readouterr(), str(health)])
            assert "channel_down" in told
            secrets = [there.slack.token, there.slack.app_token, there.discord.token]
            assert [secret for secret in secrets if secret in told] == []
            assert there.webhook.secret.removeprefix("whsec_") not in told


PLATFORMS: Mapping[str, Callable[[ExitStack], ChannelPlatform]] = {
    "slack": lambda stack: Slack(stack.enter_context(FakeSlack())),
    "discord": lambda stack: Discord(stack.enter_context(FakeDiscord())),
    "webhook": lambda stack: Webhook(stack.enter_context(FakeWebhook())),
}


@pytest.mark.parametrize("name", PLATFORMS)
async def test_b085_a_wait_of_any_length_is_passed_to_the_gate_and_blocks_nothing(
    name: str,
) -> None:
    """On a later part and on an edit: the channel itself never sleeps."""
    with ExitStack() as stack:
        platform = PLATFORMS[name](stack)
        async with platform.create_channel() as channel:
            chunks = channel.render(OutboundMessage(text="word " * 3000))
            message = await channel.send(platform.route, chunks[0], key="d:0")
            for seconds in (3, 35, 149, 1000):
                platform.throttle_calls(seconds)
                await expect_wait(channel.send(platform.route, chunks[2], key="d:2"), seconds)
            if channel.capabilities.edits:
                await expect_wait(channel.edit(platform.route, message, chunks[1]), 1000)
            assert len(platform.shown_messages()) == 1


async def expect_wait(call: Coroutine[object, object, object], seconds: int) -> None:
    """A call is refused at once, with the wait and for this chat alone."""
    with pytest.raises(Throttled) as raised:
        await call
    assert seconds - 1 <= raised.value.seconds <= seconds
    assert not raised.value.account
