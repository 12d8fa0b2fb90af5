"""Messages to Discord: no text is lost, no user is mentioned, every message is valid."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from clew.core.channel_events import (
    Button,
    ButtonPressed,
    ChannelEvent,
    IgnoredEvent,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    OutboundMessage,
)
from clew.gateway.channels.discord import codec
from clew.gateway.channels.discord.messages import MAX_LENGTH, compute_nonce
from clew.gateway.text.markdown_reader import parse_markdown
from clew.gateway.text.markdown_writer import count_utf16_units, is_linkable
from clew.gateway.text.rich_text import show_addresses, to_plain_text
from clew.testing.discord.state import validate_message
from tests.unit.test_marked import complain
from tests.unit.test_splitting import DOCUMENTS, squeezed

ME = codec.DiscordIdentity(id="1")


@settings(max_examples=25)
@given(DOCUMENTS)
def test_no_text_is_lost_and_every_discord_message_is_valid(text: str) -> None:
    chunks = codec.render(OutboundMessage(text=text))
    written = [json.loads(chunk)["content"] for chunk in chunks]
    wanted = squeezed(to_plain_text(show_addresses(parse_markdown(text), is_linkable)))
    assert squeezed("".join(to_plain_text(parse_markdown(part)) for part in written)) == wanted
    for chunk, part in zip(chunks, written, strict=True):
        complain(part)
        assert (
            count_utf16_units(json.loads(codec.with_repeat_notice(chunk))["content"]) <= MAX_LENGTH
        )
        given_ = codec.build_message(chunk, key="k")
        validate_message(given_)
        assert given_["allowed_mentions"]["parse"] == []


def test_the_reply_is_the_first_and_the_buttons_are_under_the_last_message() -> None:
    buttons = tuple(Button(label="x" * 100, data=f"a:{number}") for number in range(6))
    chunks = codec.render(OutboundMessage(text="word " * 700, buttons=buttons, reply_to="7"))
    first, last = (codec.build_message(chunk, key="k") for chunk in chunks)
    assert first["message_reference"] == {"message_id": "7", "fail_if_not_exists": False}
    assert first["components"] == []
    assert [len(row["components"]) for row in last["components"]] == [5, 1]
    validate_message(last)
    # An edit is no reply, and has no nonce.
    assert codec.build_edit(chunks[0]).keys() == {
        "content",
        "components",
        "allowed_mentions",
        "flags",
    }


def test_a_nonce_is_short_and_the_same_for_the_same_key() -> None:
    found = {compute_nonce(f"dlv_{number}:0") for number in range(1000)}
    assert len(found) == 1000
    assert max(map(len, found)) <= 25
    assert compute_nonce("dlv_1:0") in found


def told(kind: str = "MESSAGE_CREATE", **more: Any) -> ChannelEvent | IgnoredEvent:
    message = {
        "id": "175928847299117063",
        "channel_id": "20",
        "author": {"id": "42", "username": "ada"},
        "content": "hello",
        "type": 0,
        **more,
    }
    return codec.parse_dispatch({"t": kind, "s": 1, "d": message}, ME, {"21": "20"})


@pytest.mark.parametrize(
    "more",
    [
        {"author": {"id": "1", "bot": True}},
        {"webhook_id": "5"},
        {"type": 7},
        {"author": None},
        {"kind": "TYPING_START"},
        {"kind": "MESSAGE_UPDATE", "edited_timestamp": None},
    ],
)
def test_an_event_without_a_sender_is_skipped(more: dict[str, Any]) -> None:
    assert isinstance(told(**more), IgnoredEvent)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<@1> hello", "hello"),
        ("<@!1>: hello <@1>", "hello @you"),
        ("ask <@7> or <@8> in <#9>", "ask @Eve or @8 in #9"),
        ("the <@&5> say <a:wave:6>", "the @5 say :wave:"),
    ],
)
def test_a_message_is_read_as_its_sender_sees_it(content: str, text: str) -> None:
    mentions = [{"id": "7", "username": "eve", "global_name": "Eve"}]
    heard = told(content=content, mentions=mentions)
    assert isinstance(heard, MessageReceived)
    assert heard.text == text


def test_a_message_says_where_by_whom_and_when_it_was_written() -> None:
    heard = told(guild_id="9", channel_id="21", member={"nick": "Countess"})
    assert isinstance(heard, MessageReceived)
    assert (heard.route.kind, heard.route.chat, heard.route.thread) == ("group", "20", "21")
    assert codec.get_target_channel(heard.route) == "21"
    assert not heard.addressed
    assert heard.sender.name == "Countess"
    assert heard.sent_at.isoformat().startswith("2016-04-30T11:18:25")
    assert codec.snowflake_to_time(codec.time_to_snowflake(heard.sent_at)) == heard.sent_at
    sticker = told(content="", sticker_items=[{"name": "wave"}])
    assert isinstance(sticker, MessageReceived)
    assert sticker.agent_text == "[sticker wave]"


def test_a_change_and_a_deletion_name_the_message_that_was_heard() -> None:
    heard = told()
    changed = told("MESSAGE_UPDATE", content="new", edited_timestamp="2026-01-01T00:00:00Z")
    gone = told("MESSAGE_DELETE")
    assert isinstance(heard, MessageReceived)
    assert isinstance(changed, MessageEdited)
    assert isinstance(gone, MessageDeleted)
    assert changed.original == gone.original == heard.event
    assert len({heard.event, changed.event, gone.event}) == 3


def test_a_button_of_another_app_is_ignored() -> None:
    user, message = {"id": "42", "username": "ada"}, {"id": "7"}
    more = {"type": 3, "user": user, "message": message}
    ours = told("INTERACTION_CREATE", data={"custom_id": "clew:a:1"}, **more)
    assert isinstance(ours, ButtonPressed)
    assert (ours.data, ours.message, ours.sender.id) == ("a:1", "7", "42")
    assert isinstance(told("INTERACTION_CREATE", data={"custom_id": "vote"}, **more), IgnoredEvent)
