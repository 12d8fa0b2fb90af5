"""Updates of every content type: each is read, others' words are quoted and are never commands."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

from clew.features.webhooks import codec as webhook_codec
from clew.features.webhooks.signing import WebhookSignature
from clew.gateway.channels.discord import codec as discord_codec
from clew.gateway.channels.slack import codec as slack_codec
from clew.gateway.channels.telegram import codec as telegram_codec
from tests.updates import discord, slack, telegram, webhook

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.core.channel_events import ChannelEvent, IgnoredEvent
    from tests.updates.made import Made

UPDATES = 400
TELEGRAM = telegram_codec.TelegramIdentity(id=telegram.BOT, username="clew_bot")


def complaints(
    make: Callable[[random.Random, int], Made], parse: Callable[[Made], ChannelEvent | IgnoredEvent]
) -> list[str]:
    found: list[str] = []
    for number in range(UPDATES):
        made = make(random.Random(number), number)
        found += [f"{number}: {each}" for each in made.wrong(parse(made))]
    return found


def test_every_update_of_telegram_is_read_and_names_whose_words_are_whose() -> None:
    found = complaints(
        telegram.make, lambda made: telegram_codec.parse_update(made.update, TELEGRAM)
    )
    assert found == []


def test_every_dispatch_of_discord_is_read_and_names_whose_words_are_whose() -> None:
    me = discord_codec.DiscordIdentity(id=discord.BOT, roles=frozenset({discord.ROLE}))
    assert (
        complaints(discord.make, lambda made: discord_codec.parse_dispatch(made.update, me, {}))
        == []
    )


def test_every_envelope_of_slack_is_read_and_names_whose_words_are_whose() -> None:
    me = slack_codec.SlackIdentity(user=slack.ME, groups=frozenset({slack.GROUP}))
    assert complaints(slack.make, lambda made: slack_codec.parse_envelope(made.update, me)) == []


def test_everything_that_a_program_hands_in_is_read_and_names_whose_words_are_whose() -> None:
    def parse(made: Made) -> ChannelEvent:
        signed = WebhookSignature(id="evt_1", at=1_700_000_000)
        return webhook_codec.parse_event(json.dumps(made.update).encode(), signed, label=None)

    assert complaints(webhook.make, parse) == []
