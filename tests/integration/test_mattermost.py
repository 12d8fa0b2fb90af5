"""Mattermost: what people write there arrives once, whatever the connection does."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from clew.errors import SettingsError
from clew.gateway.channel import ChannelConfig
from clew.gateway.channels.mattermost.channel import open_channel
from clew.testing.mattermost import FakeMattermost
from tests.channels.desk import Plain, echo, serving, table, until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.line.world import World


class Desk(Plain):
    def __init__(self, world: World, fake: FakeMattermost) -> None:
        self.world, self.fake = world, fake

    def texts(self, chat: int = 42) -> list[str]:
        return self.shown(f"du{chat}")

    def shown(self, channel: str) -> list[str]:
        return [one.message for one in self.fake.sent if one.channel == channel]

    def waiting(self) -> int:
        return self.fake.pending_count


@asynccontextmanager
async def desk(url: str, home: Path, fake: FakeMattermost, **more: object) -> AsyncGenerator[Desk]:
    own = {"token": fake.token, "base_url": fake.url, "user": "@Clew", "allow": "u42,u43", **more}
    opened = fake.opened
    async with serving(url, home, table("mattermost", own), script=echo) as world:
        await until(lambda: fake.opened > opened)
        yield Desk(world, fake)


async def test_a_direct_message_is_answered_and_an_edit_is_told(
    store_url: str, tmp_path: Path
) -> None:
    with FakeMattermost() as fake:
        async with desk(store_url, tmp_path, fake) as here:
            first = fake.post_message("Hello *there*")
            assert await here.answered(1) == ["You said: Hello *there*"]
            fake.edit_message(first.id, "Hello again")
            await until(lambda: len(here.texts()) == 2)
            assert "Hello again" in here.texts()[1]
            assert await here.world.check() == []


async def test_what_was_written_without_a_connection_is_answered_once(
    store_url: str, tmp_path: Path
) -> None:
    """Sockets are cut, the gateway is away, and the server leaves out events."""
    with FakeMattermost() as fake:
        async with desk(store_url, tmp_path, fake) as here:
            fake.post_message("one")
            await here.answered(1)
            fake.cut_sockets()
            fake.post_message("two")
            await here.answered(2)
        fake.post_message("three")
        fake.post_message("other", user="u43")
        async with desk(store_url, tmp_path, fake) as here:
            await here.answered(3)
            await here.answered(1, chat=43)
            fake.drops_events = True
            fake.post_message("four")
            await until(lambda: fake.pending_count == 0)
            fake.drops_events = False
            fake.post_message("five")
            await until(lambda: "five" in here.texts()[-1])
            await here.quiet()
            said = [word for text in here.texts() for word in re.findall(r"\w+", text)[2:]]
            assert said == ["one", "two", "three", "four", "five"], "some answered together"
            assert here.texts(43) == ["You said: other"]


async def test_in_a_channel_only_mentions_are_answered_in_their_thread(
    store_url: str, tmp_path: Path
) -> None:
    """Bots, services and the agent itself are not."""
    with FakeMattermost() as fake:
        async with desk(store_url, tmp_path, fake, groups="town") as here:
            place = {"channel": "town", "kind": "O"}
            fake.post_message("nothing for you, @clew-2 or x@clew", **place)
            fake.post_message("joined", **place, type="system_join_channel")
            fake.post_message("@clew beep", **place, props={"from_bot": "true"})
            root = fake.post_message("Lunch?", **place)
            fake.post_message("@Clew: when?", root=root.id, **place)
            await until(lambda: here.shown("town"))
            (answer,) = [one for one in fake.sent if one.channel == "town"]
            assert answer.root == root.id
            assert "when?" in answer.message


async def test_commands_are_written_with_an_exclamation_mark(
    store_url: str, tmp_path: Path
) -> None:
    """Mattermost's client keeps what begins with a slash to itself."""
    with FakeMattermost() as fake:
        async with desk(store_url, tmp_path, fake) as here:
            fake.post_message("!status")
            await here.answered(1)
            fake.post_message(" /status")
            await here.answered(2)
            first, second = here.texts()
            assert "You said" not in first
            assert first.split("\n")[0] == second.split("\n")[0]
            fake.post_message("!important")
            assert (await here.answered(3))[2] == "You said: !important"


async def test_a_file_is_read_with_its_message(store_url: str, tmp_path: Path) -> None:
    with FakeMattermost() as fake:
        async with desk(store_url, tmp_path, fake) as here:
            file = fake.attach_file("roses.txt", b"red roses", "text/plain")
            fake.post_message("What is this?", metadata={"files": [file]}, file_ids=[file["id"]])
            (answer,) = await here.answered(1)
            assert "roses.txt" in answer
            assert "red roses" in str(here.world.model.sent[-1])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"base_url": "https://chat.example.org", "options": {"user": "clew"}}, "token is missing"),
        ({"token": "x", "options": {"user": "clew"}}, "base_url is not the address"),
        ({"token": "x", "base_url": "https://chat.example.org"}, "user is missing"),
        ({"token": "x", "options": {"team": "a"}}, "has no setting team"),
    ],
)
def test_a_setting_that_is_missing_or_unknown_is_named(given: dict[str, object], says: str) -> None:
    from clew.config.secret import Secret  # noqa: PLC0415

    whole: dict[str, object] = {"name": "mattermost", "token": None, "base_url": None}
    whole |= {"options": {}, **given}
    if whole["token"] is not None:
        whole["token"] = Secret.from_text(str(whole["token"]))
    with pytest.raises(SettingsError, match=says):
        open_channel(ChannelConfig(**whole))  # type: ignore[arg-type]
