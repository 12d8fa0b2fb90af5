"""Whatever an agent writes, people read all of it, in messages that each platform takes."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings

from clew.core.channel_events import OutboundMessage
from clew.core.text import is_blank
from clew.gateway.channels.telegram import messages as telegram
from clew.gateway.text.markdown_reader import parse_markdown
from clew.gateway.text.rich_text import CodeFrame, to_plain_text
from tests.outgoing import DOCUMENTS, PLATFORMS, Document, judge

EVERY = pytest.mark.parametrize("platform", PLATFORMS)
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@EVERY
@settings(max_examples=40, suppress_health_check=SLOW)
@given(document=DOCUMENTS)
def test_every_word_is_read_in_order_in_messages_that_the_platform_takes(
    platform: str, document: Document
) -> None:
    if not is_blank(document.text):
        judge(document, PLATFORMS[platform])


@EVERY
@pytest.mark.parametrize(
    ("text", "read_"),
    [
        ("```rm -rf /tmp/x && echo done", "rm -rf /tmp/x && echo done"),
        ("```done", "done"),
        ("~~~\n", "~~~"),
        ("```Deploy finished.\nall well\n```", "Deploy finished.\nall well"),
        ('```python title="a.py"\nx = 1\n```', 'title="a.py"\nx = 1'),
        ("```python\n\n```", "python"),
        ("#", "#"),
        (">", ">"),
        ("[](<>)", "[](<>)"),
        ("&nbsp;", "&nbsp;"),
        ("> " * 60 + "deep", "> " * 60 + "deep"),
        ("- " * 60 + "deep", "- " * 60 + "deep"),
        ("a \ud83d half", "a \N{REPLACEMENT CHARACTER} half"),
    ],
)
def test_markup_that_carries_text_is_read(platform: str, text: str, read_: str) -> None:
    shown = PLATFORMS[platform].shown
    written = "".join(map(shown, PLATFORMS[platform].render(text)))
    assert "".join(written.split()) == "".join(read_.split())


@pytest.mark.parametrize(
    ("text", "language", "code"),
    [
        ("```python\nx\n```", "python", "x"),
        ("```C++\nx\n```", "C++", "x"),
        ("```js {1,3}\nx\n```", "js", "{1,3}\nx"),
        ("```notes\nx\n```", "", "notes\nx"),
        ("```make all\nx\n```", "", "make all\nx"),
    ],
)
def test_a_word_is_a_language_only_where_it_names_one(text: str, language: str, code: str) -> None:
    pieces = parse_markdown(text)
    assert {piece.frame for piece in pieces} == {CodeFrame(language)}
    assert to_plain_text(pieces) == code


@EVERY
@pytest.mark.parametrize(
    "text", [f"[label]({'http://e.example/' + 'a' * 5000})", f"<http://e.example/{'a' * 5000}>"]
)
def test_an_address_longer_than_a_message_is_parted(platform: str, text: str) -> None:
    chunks = PLATFORMS[platform].render(text)
    most = 60 if platform == "narrow webhook" else 4
    assert len(chunks) <= most
    written = "".join("".join(map(PLATFORMS[platform].shown, chunks)).split())
    assert "http://e.example/" + "a" * 5000 in written


@EVERY
@pytest.mark.parametrize(
    "text", ["", " \n\t", "\u200b", "\u2060\ufeff \u00ad", "\u3164", "\x01\x1b"]
)
def test_an_invisible_text_is_not_a_message(platform: str, text: str) -> None:
    assert is_blank(text)
    assert PLATFORMS[platform].render(text) == []


def test_a_link_that_telegram_would_leave_out_stands_behind_its_text() -> None:
    long = f"http://e.example/{'a' * 2100}"
    (chunk,) = telegram.render(OutboundMessage(text=f"[label]({long})"))
    assert json.loads(chunk) == {"text": f"label ({long})"}


def test_code_mentions_no_user_where_telegram_refuses_its_format() -> None:
    chunks = telegram.render(OutboundMessage(text=f"```\n{'@media ' * 900}\n```"))
    for chunk in map(telegram.without_formatting, chunks):
        text = json.loads(chunk)["text"]
        assert "@media" not in text
        assert len(text) <= 4096


def test_code_in_a_link_mentions_no_user_on_telegram() -> None:
    (chunk,) = telegram.render(OutboundMessage(text="[`@everyone`](http://e.example)"))
    assert "@everyone" not in json.loads(chunk)["text"]
