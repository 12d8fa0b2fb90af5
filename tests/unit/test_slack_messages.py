"""Messages to Slack: no text is lost, no user is mentioned, every message is valid."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from clew.core.channel_events import (
    Button,
    ButtonPressed,
    IgnoredEvent,
    MessageDeleted,
    MessageReceived,
    OutboundMessage,
)
from clew.gateway.channels.slack import codec
from clew.gateway.channels.slack.messages import MAX_LENGTH, escape_mrkdwn, unescape_mrkdwn
from clew.gateway.text.markdown_reader import parse_markdown
from clew.gateway.text.markdown_writer import is_linkable
from clew.gateway.text.rich_text import show_addresses, to_plain_text
from clew.testing.slack.state import validate_message, visible_text
from tests.unit.test_splitting import DOCUMENTS, squeezed

ME = codec.SlackIdentity(user="U0", bot="B0")


@settings(max_examples=25)
@given(DOCUMENTS)
def test_no_text_is_lost_and_every_slack_message_is_valid(text: str) -> None:
    chunks = [json.loads(chunk) for chunk in codec.render(OutboundMessage(text=text))]
    wanted = squeezed(to_plain_text(show_addresses(parse_markdown(text), is_linkable)))
    assert (
        squeezed("".join(visible_text(chunk["text"], chunk["blocks"]) for chunk in chunks))
        == wanted
    )
    # The plain text, for notifications and if the blocks are refused, is complete, too.
    assert squeezed("".join(unescape_mrkdwn(chunk["text"]) for chunk in chunks)) == wanted
    for chunk in chunks:
        validate_message(chunk)
        assert "<" not in chunk["text"]
        again = json.loads(codec.with_repeat_notice(json.dumps(chunk)))
        validate_message(again)
        assert len(again["text"]) <= MAX_LENGTH
        assert "repeat" in visible_text(again["text"], again["blocks"])
        assert "blocks" not in json.loads(codec.without_formatting(json.dumps(chunk)))


def test_formats_are_named_beside_the_text() -> None:
    text = "**b** *i* ~~s~~ `c` [l](http://e.x)\n\n> q\n\n```py\nx<!here>\n```\n\n- *1*\n- 2"
    (chunk,) = map(json.loads, codec.render(OutboundMessage(text=text)))
    (block,) = chunk["blocks"]
    section, quote, code, items = block["elements"]
    styles = {each["text"]: each.get("style") for each in section["elements"]}
    assert styles == {
        "b": {"bold": True},
        "i": {"italic": True},
        "s": {"strike": True},
        "c": {"code": True},
        "l": None,
        " ": None,
    }
    assert [each["type"] for each in (quote, code, items)] == [
        "rich_text_quote",
        "rich_text_preformatted",
        "rich_text_section",
    ]
    assert code["elements"] == [{"type": "text", "text": "x<!here>"}]
    assert "".join(each["text"] for each in items["elements"]) == "• 1\n• 2"


def test_buttons_are_under_the_last_message() -> None:
    button = Button(label="x" * 100, data="a:1")
    first, last = map(
        json.loads, codec.render(OutboundMessage(text="word " * 1200, buttons=(button,)))
    )
    assert [block["type"] for block in first["blocks"]] == ["rich_text"]
    assert last["blocks"][-1]["elements"][0]["value"] == "a:1"
    validate_message(last)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("<@U0> hello", "hello"),
        ("<@U0|clew>: hello <@U0>", "hello @you"),
        ("ask <@U7|ada> or <@U8>", "ask @ada or @U8"),
        ("in <#C1|general> and <#C2>", "in #general and #C2"),
        ("<!here> <!channel> <!subteam^S1|@team>", "@here @channel @team"),
        ("<http://e.x> <http://e.x|text> <http://e.x|e.x>", "http://e.x text (http://e.x) http://e.x"),
        ("<mailto:a@b.x|a@b.x>", "a@b.x"),
        ("1 < 2", "1 < 2"),
    ],
)  # fmt: skip
def test_a_message_is_read_as_its_sender_sees_it(raw: str, text: str) -> None:
    assert codec.read_own_text(raw, ME) == text


def test_escaping_is_undone() -> None:
    text = "&lt; <x> & &amp;gt;"
    assert unescape_mrkdwn(escape_mrkdwn(text)) == text


def event(**more: object) -> dict[str, object]:
    told = {"type": "message", "channel": "D1", "user": "U1", "ts": "12.5", "text": "x", **more}
    return {"type": "events_api", "payload": {"event": told}}


@pytest.mark.parametrize(
    "more",
    [
        {"user": "U0"},
        {"bot_id": "B7"},
        {"subtype": "channel_join"},
        {"text": ""},
        {"type": "reaction_added"},
        {"subtype": "message_deleted", "deleted_ts": "1.1", "previous_message": {"user": "U0"}},
    ],
)
def test_an_event_without_a_sender_is_skipped(more: dict[str, object]) -> None:
    assert isinstance(codec.parse_envelope(event(**more), ME), IgnoredEvent)
    closed = {"type": "interactive", "payload": {"type": "view_closed"}}
    assert isinstance(codec.parse_envelope(closed, ME), IgnoredEvent)


def test_a_deletion_names_the_event_of_the_message() -> None:
    heard = codec.parse_envelope(event(), ME)
    gone = {"subtype": "message_deleted", "deleted_ts": "12.5", "previous_message": {"user": "U1"}}
    deleted = codec.parse_envelope(event(**gone, ts="13.0"), ME)
    assert isinstance(heard, MessageReceived)
    assert isinstance(deleted, MessageDeleted)
    assert (deleted.original, deleted.route) == (heard.event, heard.route)


def test_a_press_is_known_by_who_pressed_what_when() -> None:
    payload = {
        "type": "block_actions",
        "user": {"id": "U1", "name": "ada"},
        "container": {"channel_id": "C1", "message_ts": "5.5", "thread_ts": "4.4"},
        "actions": [{"action_id": "clew:0", "value": "a:1", "action_ts": "9.9"}],
    }
    pressed = codec.parse_envelope({"type": "interactive", "payload": payload}, ME)
    assert isinstance(pressed, ButtonPressed)
    assert (pressed.event, pressed.data, pressed.message) == ("press:C1:5.5:U1:9.9", "a:1", "5.5")
    assert (pressed.route.chat, pressed.route.thread) == ("C1", "4.4")
