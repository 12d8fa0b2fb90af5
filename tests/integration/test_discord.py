"""Discord: everything that people send, everything that is sent to them, and what goes wrong."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import pytest
from pydantic_ai.messages import ModelResponse, ToolCallPart

from clew.config.secret import Secret
from clew.core.channel_events import OutboundMessage
from clew.core.health import ChannelState
from clew.core.route import Route
from clew.errors import (
    AccountRefused,
    ChannelError,
    NotDelivered,
    OutcomeUnknown,
    SettingsError,
    Throttled,
)
from clew.gateway.channel import ChannelConfig
from clew.gateway.channels.discord import gateway_connection
from clew.gateway.channels.discord.channel import open_channel
from clew.gateway.channels.discord.transport import to_channel_error
from clew.testing.channels import FakeTimer, MemoryPlatform
from clew.testing.channels.memory import CAPABILITIES
from clew.testing.discord import FakeDiscord
from clew.testing.discord.actions import BOT_ID
from clew.testing.telegram import FaultInjector
from tests.channels.desk import Plain, echo, memory_desk, serving, table, until
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from tests.line.world import World

CHANNEL, THREAD = "500", "501"
ME = f"<@{BOT_ID}>"


def pay_or_echo(messages: Sequence[ModelMessage]) -> ModelResponse:
    answer = echo(messages)
    if (answer.text or "").endswith("pay"):
        return ModelResponse(parts=[ToolCallPart("pay", {"what": "`rm -rf` @everyone"})])
    return answer


@dataclass(frozen=True, kw_only=True)
class DiscordDesk(Plain):
    world: World
    discord: FakeDiscord

    def texts(self, chat: int = 42) -> list[str]:
        return self.discord.list_texts(f"7{chat}")

    def waiting(self) -> int:
        return self.discord.pending_count


@asynccontextmanager
async def open_desk(
    url: str, home: Path, discord: FakeDiscord, **settings: object
) -> AsyncGenerator[DiscordDesk]:
    own = {
        "token": discord.token,
        "base_url": discord.api_url,
        "allow": "42",
        "groups": CHANNEL,
        "stream": False,
        **settings,
    }
    async with serving(url, home, table("discord", own), script=pay_or_echo) as world:
        health = world.engine.channels
        await until(lambda: health["discord"].state is not ChannelState.CONNECTING)
        yield DiscordDesk(world=world, discord=discord)
        assert await world.check() == []


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/clew.db"


@pytest.fixture
async def desk(url: str, tmp_path: Path) -> AsyncGenerator[DiscordDesk]:
    with FakeDiscord() as discord:
        discord.open_channel(CHANNEL)
        async with open_desk(url, tmp_path, discord) as found:
            yield found


async def test_a_burst_is_one_question_and_an_edit_of_it_is_asked_again(desk: DiscordDesk) -> None:
    desk.discord.post_message("one")
    message = desk.discord.post_message("two <:smile:5>")
    assert await desk.answered() == ["You said: one \\| two :smile:"]
    desk.discord.edit_message(message, "three")
    answers = await desk.answered(2)
    assert answers[1] == "You said: one \\| three"
    # A preview of a link is told as a change, too.
    desk.discord.send_dispatch("MESSAGE_UPDATE", {"id": message, "channel_id": "742", "embeds": []})
    desk.discord.delete_message(message)
    await desk.quiet()
    assert len(desk.texts()) == 2


async def test_in_guilds_what_is_meant_for_it_is_answered_and_a_thread_is_kept_apart(
    desk: DiscordDesk,
) -> None:
    # Nobody told of it: it is looked up.
    desk.discord.open_channel(THREAD, parent=CHANNEL)
    desk.discord.post_message("between us", channel=CHANNEL)
    first = desk.discord.post_message(f"{ME}, hello", channel=CHANNEL)
    desk.discord.post_message(f"and here {ME}", channel=THREAD)
    await until(lambda: len(desk.discord.sent) == 2)
    reply = {"author": {"id": BOT_ID}}
    desk.discord.post_message("and again", channel=CHANNEL, referenced_message=reply, type=19)
    await until(lambda: len(desk.discord.sent) == 3)
    await desk.quiet()
    assert desk.discord.list_texts(CHANNEL) == [
        "You said: Ada (42): hello",
        "You said: Ada (42): and again",
    ]
    assert desk.discord.list_texts(THREAD) == [f"You said: Ada (42): and here @{JOINER}you"]
    assert desk.discord.sent[0].reply_to == first or desk.discord.sent[1].reply_to == first
    assert len((await desk.world.engine.list_conversations()).items) == 2


JOINER = "\N{WORD JOINER}"


async def test_slash_commands_are_listed_carried_out_once_and_answered(desk: DiscordDesk) -> None:
    listed = {each["name"]: each for each in desk.discord.commands}
    assert {"new", "stop", "help"} <= listed.keys()
    given = desk.discord.send_command("title", "The talk")
    (answer,) = await desk.answered()
    assert "The talk" in answer
    # The sender alone is told at once that the command has arrived.
    await until(lambda: desk.discord.get_response(given))
    told = desk.discord.get_response(given)
    assert told is not None
    assert (told["data"]["content"], told["data"]["flags"]) == ("/title", 64)
    await desk.quiet()


async def test_a_button_lets_a_tool_run_once_and_goes_away(desk: DiscordDesk) -> None:
    desk.discord.post_message("pay")
    await until(lambda: any(one.buttons for one in desk.discord.sent))
    (asked,) = [one for one in desk.discord.sent if one.buttons]
    assert "@everyone" in asked.content
    assert asked.pings == []
    label = asked.buttons[0]["label"]
    stranger = desk.discord.press_button(label, user="99")
    await until(lambda: desk.discord.get_response(stranger))
    assert asked.buttons
    pressed = desk.discord.press_button(label)
    await until(lambda: not asked.buttons)
    assert asked.labels == ["Allowed: pay"]
    await until(lambda: desk.discord.get_response(pressed))
    await desk.answered(2)
    await desk.quiet()


async def test_files_of_a_forwarded_message_are_fetched_from_it(desk: DiscordDesk) -> None:
    file = desk.discord.add_file("note.txt", b"milk")
    snapshot = {"message": {"content": "look", "attachments": [file]}}
    desk.discord.post_message("", message_snapshots=[snapshot], message_reference={"type": 1})
    (answer,) = await desk.answered()
    assert "note.txt, text/plain, 4 bytes" in answer
    assert "Forwarded message:" in answer
    await desk.quiet()


async def test_files_are_fetched_from_discord_and_from_nowhere_else(desk: DiscordDesk) -> None:
    here = desk.discord.add_file("note.txt", b"milk")
    large = desk.discord.add_file("large.bin", b"x", size=30_000_000)
    elsewhere = desk.discord.add_file("else.txt", b"x", url="http://e.example/x")
    desk.discord.post_message("these", attachments=[here, large, elsewhere])
    (answer,) = await desk.answered()
    assert "note.txt, text/plain, 4 bytes" in answer
    assert "30,000,000 bytes" in answer
    assert "not at Discord" in answer
    await desk.quiet()


async def test_an_answer_grows_in_its_place(url: str, tmp_path: Path) -> None:
    with FakeDiscord() as discord:
        async with open_desk(url, tmp_path, discord, stream=True) as desk:
            go_on = asyncio.Event()

            async def wait() -> None:
                await go_on.wait()

            desk.world.points.arm("piece 'said:'", wait)
            discord.post_message("hello")
            await until(lambda: desk.texts() == ["You said: …"])
            go_on.set()
            await desk.answered()
            await desk.quiet()
            (message,) = discord.sent
            assert message.texts == ["You said: …", "You said: hello"]


# Failures


async def test_a_message_sent_during_downtime_is_answered_once_after_a_restart(
    store_url: str, tmp_path: Path
) -> None:
    with FakeDiscord() as discord:
        async with open_desk(store_url, tmp_path, discord) as desk:
            discord.post_message("one")
            await desk.answered()
            await desk.quiet()
        discord.post_message("two")
        for _ in range(2):
            async with open_desk(store_url, tmp_path, discord) as desk:
                await desk.answered(2)
                await desk.quiet()
        assert discord.list_texts("742") == ["You said: one", "You said: two"]
        # A connection that a busy machine loses is resumed once more.
        assert discord.started == 1
        assert discord.resumed >= 2


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_connection, "_INVALID_SESSION_PAUSE", (0.0, 0.0))


@pytest.mark.usefixtures("at_once")
async def test_messages_missed_between_sessions_are_looked_up_in_used_chats(
    url: str, tmp_path: Path
) -> None:
    with FakeDiscord() as discord:
        discord.open_channel(CHANNEL)
        async with open_desk(url, tmp_path, discord) as desk:
            discord.post_message("one")
            discord.post_message(f"{ME} here", channel=CHANNEL)
            await until(lambda: len(discord.sent) == 2)
            await desk.quiet()
        discord.drop_sessions()
        discord.post_message("two")
        discord.post_message(f"{ME} there", channel=CHANNEL)
        async with open_desk(url, tmp_path, discord) as desk:
            await until(lambda: len(discord.sent) == 4)
            await desk.quiet()
        assert discord.list_texts("742") == ["You said: one", "You said: two"]
        assert discord.list_texts(CHANNEL)[1] == "You said: Ada (42): there"
        assert discord.started == 2


@pytest.mark.usefixtures("at_once")
async def test_a_connection_that_is_renewed_invalidated_or_breaks_loses_nothing(
    desk: DiscordDesk,
) -> None:
    discord = desk.discord
    breaks = [
        discord.request_reconnect,
        discord.cut_sockets,
        lambda: discord.invalidate_sessions(resumable=True),
        lambda: discord.invalidate_sessions(resumable=False),
        lambda: discord.close_connections(4009),
        lambda: setattr(discord, "answers_heartbeats", False),
    ]
    for number, break_ in enumerate(breaks, 1):
        opened = discord.opened
        break_()
        discord.post_message(f"message {number}")
        await desk.answered(number)
        await until(lambda opened=opened: discord.opened > opened)
        discord.answers_heartbeats = True
    discord.send_dispatch("MESSAGE_CREATE", {"id": "x", "channel_id": None})
    await desk.quiet()
    assert desk.texts() == [f"You said: message {number}" for number in range(1, len(breaks) + 1)]


async def test_a_bad_day_loses_nothing_and_repeats_nothing(url: str, tmp_path: Path) -> None:
    """Cut connections, lost answers, waits, repeated dispatches: the nonce says all."""
    faults = FaultInjector(cut=0.1, lost=0.1, throttled=0.05, broken=0.05, duplicated=0.2, seed=2)
    with FakeDiscord(faults=faults) as discord:
        async with open_desk(url, tmp_path, discord, allow="*", double_text="queue") as desk:
            for number, user in product(range(2), range(1, 7)):
                discord.post_message(f"message {number} of {user}", user=str(user))
            await desk.quiet()
            assert await desk.world.engine.deliveries.list_deliveries() == []
        assert discord.intrusions == 0
        for user in range(1, 7):
            wanted = [f"You said: message {number} of {user}" for number in range(2)]
            assert discord.list_texts(f"7{user}") == wanted


async def test_a_message_that_the_platform_forgot_is_sent_again_and_marked(
    url: str, tmp_path: Path
) -> None:
    able = replace(CAPABILITIES, idempotent=True, key_lifetime=0.0)
    timer = FakeTimer()
    platform = MemoryPlatform(timer=timer, capabilities=able)
    settings = {"stream": False}
    async with memory_desk(url, tmp_path, platform, timer=timer, settings=settings) as desk:
        platform.capabilities = replace(able, idempotent=False)
        platform.cut_next_call(after=True)
        platform.post_message("hello")
        await desk.answered()

        def repeated() -> bool:
            timer.advance(1)
            return len(desk.texts()) >= 2

        await wait_until(repeated, "the repetition")
        await desk.quiet()
        assert desk.texts() == ["You said: hello", "(may be a repeat) You said: hello"]


async def test_a_bot_that_may_not_hear_or_is_not_known_says_what_to_do(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeDiscord() as discord:
        discord.refuses_intents = True
        async with open_desk(url, tmp_path, discord) as desk:
            health = desk.world.engine.channels
            await until(lambda: health["discord"].state is ChannelState.REFUSED)
            assert "message content intent" in (health["discord"].error or "")
        wrong = discord.token.replace("fake.token", "other.nonsense")
        async with open_desk(url, tmp_path, discord, token=wrong) as desk:
            refused = desk.world.engine.channels
            await until(lambda: refused["discord"].state is ChannelState.REFUSED)
            assert "does not know the bot's token" in (refused["discord"].error or "")
    out, err = capsys.readouterr()
    assert "nonsense" not in out + err


ERRORS: list[tuple[int, object, dict[str, str], type[ChannelError]]] = [
    (401, {"code": 0}, {}, AccountRefused),
    (403, {"code": 50007, "message": "Cannot send"}, {}, NotDelivered),
    (404, {"code": 10008, "message": "Unknown Message"}, {}, NotDelivered),
    (400, {"code": 50035}, {}, NotDelivered),
    (502, {}, {}, OutcomeUnknown),
    (301, {}, {}, OutcomeUnknown),
    (429, {"retry_after": 1.5}, {}, Throttled),
    (429, {}, {"Retry-After": "600"}, Throttled),
]


@pytest.mark.parametrize(("status", "body", "headers", "kind"), ERRORS)
def test_each_error_of_discord_is_what_it_means(
    status: int, body: object, headers: dict[str, str], kind: type[ChannelError]
) -> None:
    error = to_channel_error(status, body, headers)
    assert type(error) is kind
    if isinstance(error, NotDelivered):
        assert error.gone == (status == 404)
    if isinstance(error, Throttled):
        assert (error.seconds, error.account) == ((1.5, False) if body else (600.0, True))


async def test_a_wait_for_the_whole_bot_is_recognised() -> None:
    with FakeDiscord() as discord:
        discord.open_dm("42")
        config = ChannelConfig(
            name="discord",
            token=Secret.from_text(discord.token),
            base_url=discord.api_url,
            options={},
        )
        async with open_channel(config) as channel:
            discord.throttle_all(35)
            (chunk,) = channel.render(OutboundMessage(text="hello"))
            route = Route(platform="discord", kind="dm", chat="742")
            with pytest.raises(Throttled) as raised:
                await channel.send(route, chunk, key="k")
            assert raised.value.account


@pytest.mark.parametrize("token", [None, "nonsense", "a.b.c", "!!.b.c", "YWJj.b.c"])
def test_a_token_that_is_none_is_refused(token: str | None) -> None:
    secret = None if token is None else Secret.from_text(token)
    with pytest.raises(SettingsError, match="not the token of a Discord bot"):
        open_channel(ChannelConfig(name="discord", token=secret, base_url=None, options={}))
