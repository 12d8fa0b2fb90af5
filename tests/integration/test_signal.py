"""Signal: what people write through signal-cli arrives once, and each failure is a sentence."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from clew.core.channel_events import (
    IgnoredEvent,
    MessageDeleted,
    MessageReceived,
    OutboundMessage,
)
from clew.core.route import Route
from clew.errors import AccountRefused, NotDelivered, OutcomeUnknown, SettingsError, Throttled
from clew.gateway.channel import ChannelConfig
from clew.gateway.channels.signal import codec, messages
from clew.gateway.channels.signal.channel import open_channel
from clew.gateway.channels.signal.transport import find_failure, to_channel_error
from clew.testing.signal import FakeSignal
from tests.channels.desk import Plain, echo, serving, table, until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.line.world import World


class Desk(Plain):
    def __init__(self, world: World, fake: FakeSignal) -> None:
        self.world, self.fake = world, fake

    def texts(self, chat: int = 42) -> list[str]:
        return self.fake.list_texts(str(chat))

    def waiting(self) -> int:
        return self.fake.pending_count


@asynccontextmanager
async def desk(url: str, home: Path, fake: FakeSignal, **more: object) -> AsyncGenerator[Desk]:
    own = {"base_url": fake.url, "account": fake.account, "allow": "42", **more}
    async with serving(url, home, table("signal", own), script=echo) as world:
        yield Desk(world, fake)


async def test_what_was_written_without_a_connection_is_answered_once(
    tmp_path: Path,
) -> None:
    """The stream is cut, the gateway is away, and an edit is told."""
    url = f"sqlite:///{tmp_path}/clew.db"
    with FakeSignal() as fake:
        async with desk(url, tmp_path, fake) as here:
            fake.post_message("one")
            await here.answered(1)
            fake.cut_streams()
            fake.post_message("two")
            await here.answered(2)
            await here.quiet()
        fake.is_shared = True
        third = fake.post_message("three")
        async with desk(url, tmp_path, fake) as here:
            await here.answered(3)
            fake.post({"message": "3", "target": third}, kind="editMessage")
            await here.answered(4)
            await here.quiet()
            assert here.texts() == [f"You said: {text}" for text in ("one", "two", "three", "3")]
            assert await here.world.check() == []


async def test_a_group_is_answered_where_it_mentions_the_agent_and_a_file_is_read(
    tmp_path: Path,
) -> None:
    with FakeSignal() as fake:
        url = f"sqlite:///{tmp_path}/clew.db"
        async with desk(url, tmp_path, fake, groups="Zz8=") as here:
            group = {"groupInfo": {"groupId": "Zz8=", "type": "DELIVER"}}
            fake.post({"message": "nothing for you", **group})
            mention = {"name": "Clew", "number": fake.account, "start": 0, "length": 1}
            file = fake.attach_file("roses.txt", b"red roses", "text/plain")
            told = {"message": "\ufffc what is this?", "mentions": [mention]}
            fake.post({**told, "attachments": [file], **group})
            await until(lambda: fake.list_texts("Zz8="))
            (answer,) = fake.list_texts("Zz8=")
            assert "@Clew what is this?" in answer
            assert "roses.txt" in answer
            assert "red roses" in str(here.world.model.sent[-1])


ME = codec.SignalIdentity(number="+15550783881")


def parse(envelope: dict[str, Any]) -> object:
    who = {"source": "42", "sourceUuid": "u-42", "sourceName": "Ann"}
    return codec.parse_envelope({"envelope": {**who, **envelope}, "account": ME.number}, ME)


@pytest.mark.parametrize(
    ("message", "read"),
    [
        ({"message": "hi"}, "hi"),
        ({"reaction": {"emoji": "👍", "targetSentTimestamp": 1}}, "[reaction 👍]"),
        ({"isExpirationUpdate": True, "expiresInSeconds": 60}, "[messages disappear after 60 s]"),
        ({"sticker": {"packId": "1", "stickerId": 2}}, "[sticker]"),
        (
            {"contacts": [{"name": {"display": "Ann"}, "phone": [{"value": "+49"}]}]},
            "[contact Ann, +49]",
        ),
        ({"message": "x", "viewOnce": True}, "x\n[shown only once]"),
        (
            {"message": "no", "quote": {"authorNumber": ME.number, "text": "/new"}},
            "no\n\nIn reply to you:\n> /new",
        ),
        ({"message": "ha", "storyContext": {}}, "ha\n\nIn reply to a story."),
        ({"payment": {"note": "x"}}, "[unsupported: payment]"),
        ({"pollCreate": {"question": "Where?"}}, "[poll: Where?]"),
        ({}, "[unsupported: a message without content]"),
        (
            {"message": "😀 \ufffc!", "mentions": [{"name": "Bob", "start": 3, "length": 1}]},
            "😀 @Bob!",
        ),
    ],
)
def test_every_kind_of_message_is_read_as_text_or_names_what_it_is(
    message: dict[str, Any], read: str
) -> None:
    event = parse({"dataMessage": {"timestamp": 1793183520000, **message}})
    assert isinstance(event, MessageReceived)
    assert event.agent_text == read
    assert event.sender.id == "u-42"


@pytest.mark.parametrize(
    "envelope",
    [
        {"syncMessage": {"sentMessage": {"message": "from my phone"}}},
        {"sourceNumber": ME.number, "dataMessage": {"timestamp": 1, "message": "own"}},
        {"receiptMessage": {"isRead": True}},
        {"typingMessage": {"action": "STARTED"}},
        {"storyMessage": {"allowsReplies": True}},
        {"dataMessage": {"timestamp": 1, "reaction": {"emoji": "👍", "isRemove": True}}},
        {"dataMessage": {"timestamp": 1, "groupInfo": {"groupId": "Zz8=", "type": "UPDATE"}}},
        {},
    ],
)
def test_what_nobody_said_to_the_agent_is_passed_over(envelope: dict[str, Any]) -> None:
    assert isinstance(parse(envelope), IgnoredEvent)


def test_a_deletion_names_the_message_that_was_deleted() -> None:
    event = parse({"dataMessage": {"timestamp": 2, "remoteDelete": {"timestamp": 1}}})
    assert isinstance(event, MessageDeleted)
    assert event.original == "u-42:1"


def test_formatting_is_sent_as_ranges_that_a_repeat_notice_moves() -> None:
    (chunk,) = messages.render(OutboundMessage(text="😀 **bold** and `code`"))
    route = Route(platform="signal", kind="dm", chat="u-42")
    assert messages.build_send(route, chunk) == {
        "recipient": ["u-42"],
        "message": "😀 bold and code",
        "textStyle": ["3:4:BOLD", "12:4:MONOSPACE"],
    }
    again = messages.build_send(route, messages.with_repeat_notice(chunk))
    assert again["textStyle"] == ["21:4:BOLD", "30:4:MONOSPACE"]


@pytest.mark.parametrize(
    ("result", "kind", "says"),
    [
        ({"type": "UNREGISTERED_FAILURE"}, NotDelivered, "not registered"),
        ({"type": "IDENTITY_FAILURE"}, NotDelivered, "safety number has changed"),
        ({"type": "NETWORK_FAILURE"}, OutcomeUnknown, "could not reach Signal"),
        ({"type": "RATE_LIMIT_FAILURE", "retryAfterSeconds": 7}, Throttled, "wait 7 s"),
        ({"type": "RATE_LIMIT_FAILURE", "token": "abc"}, Throttled, "challenge abc"),
    ],
)
def test_a_failure_of_a_recipient_is_a_sentence(
    result: dict[str, Any], kind: type[Exception], says: str
) -> None:
    error = find_failure([result])
    assert isinstance(error, kind)
    assert says in str(error)
    assert find_failure([result, {"type": "SUCCESS"}]) is None


def test_an_error_of_the_daemon_says_whether_to_wait_to_repeat_or_to_give_up() -> None:
    for code, kind in (
        (-1, NotDelivered),
        (-3, OutcomeUnknown),
        (-4, NotDelivered),
        (-5, Throttled),
    ):
        assert isinstance(to_channel_error({"code": code, "message": "no"}), kind)


async def test_typing_is_shown_and_the_last_message_marked_as_read_once() -> None:
    with FakeSignal() as fake:
        own = MappingProxyType({"account": fake.account})
        config = ChannelConfig(name="signal", token=None, base_url=fake.url, options=own)
        async with open_channel(config) as channel:
            events = channel.receive()
            at = fake.post_message("hello")
            (event,) = await anext(events)
            for _ in range(2):
                await channel.show_typing(event.route)
    read = {"recipient": "42", "targetTimestamp": [at], "type": "read"}
    typing = ("sendTyping", {"recipient": ["42"]})
    assert fake.hints == [("sendReceipt", read), typing, typing]


async def test_an_account_that_the_daemon_does_not_have_is_refused() -> None:
    with FakeSignal() as fake:
        fake.is_shared = True
        own = MappingProxyType({"account": "+15550000000"})
        config = ChannelConfig(name="signal", token=None, base_url=fake.url, options=own)
        with pytest.raises(AccountRefused, match="no account"):
            await open_channel(config).__aenter__()


@pytest.mark.parametrize(
    ("options", "base_url", "says"),
    [
        ({}, None, "account must be"),
        ({"account": "ann@example.org"}, None, "account must be"),
        ({"account": "+1555"}, "localhost", "base_url is not"),
        ({"account": "+1555", "read_receipts": "maybe"}, None, "true or false"),
        ({"number": "+1555"}, None, "has no setting number"),
    ],
)
def test_a_setting_that_is_missing_or_unknown_is_named(
    options: dict[str, object], base_url: str | None, says: str
) -> None:
    config = ChannelConfig(name="signal", token=None, base_url=base_url, options=options)
    with pytest.raises(SettingsError, match=says):
        open_channel(config)
