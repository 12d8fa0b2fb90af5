"""Splitting and rendering: whatever is written, no text is lost and every message is valid."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.core.channel_events import Button, OutboundMessage
from clew.gateway.channels.telegram import messages as telegram
from clew.gateway.channels.telegram.entities import MAX_ENTITIES, MAX_LENGTH
from clew.gateway.text.markdown_reader import parse_markdown, parse_plain_text
from clew.gateway.text.markdown_writer import count_utf16_units, is_linkable
from clew.gateway.text.rich_text import CodeFrame, show_addresses, to_plain_text

JOINER = "\N{WORD JOINER}"

WORDS = [
    "word", "lettuce", "x_y", "2*3", "@alice", "@everyone",
    "a@b.example", "שלום", "مرحبا", "👨‍👩‍👧‍👦", "🏳️‍🌈",
    "e\u0301", "🇩🇪", "👍🏽", "नमस्ते", "漢字", "한국어",
    "<!channel>", "<@U123>", "#tag", "/new", "1.", "-", ">", "|",
    "```", "~~", "**", "\\", "[x]", "![", "](",
    "http://e.example/a_b?c=1", "\u200f", "<b>", "}{", "$",
]  # fmt: skip
CODE = ["def f():", "    return 1", "", "\tx", "@media", "👩‍💻"]
TARGETS = ["http://e.example/1", "tg://user?id=42", "mailto:a@b.example", "javascript:x"]
UNITS = ["x", "👨‍👩‍👧‍👦", "ש", "é", "ab ", "🇩🇪"]
TABLE = "| a | b |\n|---|---|\n| 1 | 2 | 3 |"

Draw = st.DrawFn
LINES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)


@st.composite
def fences(draw: Draw) -> str:
    lines = draw(st.lists(st.sampled_from(CODE), max_size=30))
    return "\n".join([f"```{draw(st.sampled_from(['', 'python', 'sh']))}", *lines, "```"])


@st.composite
def lists(draw: Draw) -> str:
    items = draw(st.lists(st.tuples(st.integers(0, 3), LINES), min_size=1, max_size=10))
    if draw(st.booleans()):
        return "\n".join(f"{n}. {line}" for n, (_, line) in enumerate(items, 7))
    return "\n".join(f"{'   ' * depth}- {line}" for depth, line in items)


@st.composite
def quotes(draw: Draw) -> str:
    return "\n".join(f"> {line}" for line in draw(st.lists(LINES, min_size=1, max_size=4)))


@st.composite
def links(draw: Draw) -> str:
    text = draw(st.sampled_from(["here", "**bold** one", "@alice", "👨‍👩‍👧‍👦"]))
    return f"see [{text}]({draw(st.sampled_from(TARGETS))}) there"


@st.composite
def marked(draw: Draw) -> str:
    mark = draw(st.sampled_from(["**", "*", "~~", "`", "***"]))
    words = draw(st.lists(st.sampled_from(["bold", "as", "👍🏽"]), min_size=1, max_size=120))
    return f"{mark}{' '.join(words)}{mark}"


@st.composite
def long_lines(draw: Draw) -> str:
    return (draw(st.sampled_from(UNITS)) * draw(st.integers(3_000, 10_000)))[:10_000]


BLOCKS = st.one_of(LINES, fences(), lists(), quotes(), links(), marked(), st.just(TABLE))
MANY = st.lists(BLOCKS, min_size=30, max_size=60)
DOCUMENTS = st.one_of(
    st.lists(BLOCKS, min_size=1, max_size=12), st.tuples(BLOCKS, long_lines(), BLOCKS), MANY
).map("\n\n".join)


def squeezed(text: str) -> str:
    """Return the readable text, without line breaks."""
    return "".join(text.split()).replace(JOINER, "")


@settings(max_examples=40)
@given(DOCUMENTS)
def test_no_text_is_lost_and_every_telegram_message_is_valid(text: str) -> None:
    chunks = [json.loads(chunk) for chunk in telegram.render(OutboundMessage(text=text))]
    written = "".join(chunk["text"] for chunk in chunks)
    assert squeezed(written) == squeezed(
        to_plain_text(show_addresses(parse_markdown(text), is_linkable))
    )
    for chunk in chunks:
        complain(chunk)


@settings(max_examples=150)
@given(st.lists(st.sampled_from([*"ab1 \n\n*_~`>#-+.()[]!|\\<@:\t", "abc", "\n\n", "```", "- "])))
def test_every_word_that_is_written_is_read(tokens: list[str]) -> None:
    text = "".join(tokens)
    read_ = squeezed(to_plain_text(parse_markdown(text)))
    for word in re.findall(r"[a-z0-9]+", text):
        assert word in read_


def complain(chunk: dict[str, Any]) -> None:
    """Fail where Telegram would refuse a message, show it wrongly or mention somebody."""
    text: str = chunk["text"]
    entities: list[dict[str, Any]] = chunk.get("entities", [])
    assert text.strip()
    assert count_utf16_units(text) <= MAX_LENGTH
    assert len(entities) <= MAX_ENTITIES
    units = text.encode("utf-16-le")
    hidden = units
    for entity in entities:
        begins, ends = entity["offset"] * 2, (entity["offset"] + entity["length"]) * 2
        assert 0 <= begins < ends <= len(units)
        units[begins:ends].decode("utf-16-le")  # else it parts a character
        assert not entity.get("url", "http").startswith("tg:")
        if entity["type"] in ("pre", "code"):
            hidden = hidden[:begins] + b"x\0" * entity["length"] + hidden[ends:]
            alone(entity, entities)
    assert not re.search(r"(?<!\w)@\w", hidden.decode("utf-16-le"))
    again = json.loads(telegram.with_repeat_notice(json.dumps(chunk)))
    assert count_utf16_units(again["text"]) <= MAX_LENGTH


def alone(code: dict[str, Any], entities: list[dict[str, Any]]) -> None:
    """Code is in no other format, but may be quoted."""
    ends = code["offset"] + code["length"]
    for entity in entities:
        if entity is not code and entity["type"] != "blockquote":
            assert entity["offset"] >= ends or entity["offset"] + entity["length"] <= code["offset"]


@pytest.mark.parametrize(
    "character", ["👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "👍🏽", "e\u0301", "한"], ids=lambda c: f"{ord(c[0]):x}"
)
def test_one_visible_character_is_in_one_message(character: str) -> None:
    chunks = telegram.render(OutboundMessage(text=character * 2500))
    assert len(chunks) > 1 or character == "한"
    for chunk in chunks:
        assert set(regex.findall(r"\X", json.loads(chunk)["text"])) == {character}


def test_b091_a_long_block_of_code_is_code_in_every_message() -> None:
    block = "\n".join(f"    total += {n}  # step {n}" for n in range(300))
    chunks = telegram.render(OutboundMessage(text=f"Here:\n\n```python\n{block}\n```\n\nDone."))
    assert len(chunks) > 2
    lines: list[str] = []
    for chunk in map(json.loads, chunks):
        (code,) = [one for one in chunk["entities"] if one["type"] == "pre"]
        assert code["language"] == "python"
        shown = chunk["text"].encode("utf-16-le")
        begins, length = code["offset"] * 2, code["length"] * 2
        lines += shown[begins : begins + length].decode("utf-16-le").split("\n")
    assert "\n".join(lines) == block


def test_a_block_that_fits_into_a_message_is_not_parted() -> None:
    text = "word " * 700 + "\n\n```\n" + "line\n" * 200 + "```\n\n- a\n- b\n"
    first, second = map(json.loads, telegram.render(OutboundMessage(text=text)))
    assert "line" not in first["text"]
    assert second["text"].count("line") == 200


def test_a_link_is_whole() -> None:
    text = "word " * 814 + "[a link of several words](http://e.example/)"
    first, second = map(json.loads, telegram.render(OutboundMessage(text=text)))
    assert "entities" not in first
    assert second["entities"] == [
        {"type": "text_link", "url": "http://e.example/", "offset": 0, "length": 23}
    ]


def test_many_formats_are_no_more_than_telegram_shows() -> None:
    text = " ".join(f"**b{n}** *i{n}*" for n in range(200))
    chunks = [json.loads(chunk) for chunk in telegram.render(OutboundMessage(text=text))]
    assert sum(len(chunk["entities"]) for chunk in chunks) == 400
    assert max(len(chunk["entities"]) for chunk in chunks) <= MAX_ENTITIES


def test_the_buttons_are_under_the_last_message_and_the_reply_is_the_first() -> None:
    button = Button(label="Allow", data="a:1")
    chunks = telegram.render(OutboundMessage(text="word " * 2000, buttons=(button,), reply_to="7"))
    bodies = [json.loads(chunk) for chunk in chunks]
    assert [("reply_to" in body, "buttons" in body) for body in bodies] == [
        (True, False),
        (False, False),
        (False, True),
    ]


def test_text_without_markdown_is_unchanged() -> None:
    text = "/rewind n: go back to *after* entry n\n\n\n  [title] _x_"
    assert squeezed(to_plain_text(parse_plain_text(text))) == squeezed(text)
    (chunk,) = telegram.render(OutboundMessage(text=text, markup=False))
    assert "entities" not in json.loads(chunk)


def test_a_message_of_spaces_is_no_message() -> None:
    assert telegram.render(OutboundMessage(text=" \n\n\t\n")) == []


def test_a_repeat_says_so_and_keeps_its_formats() -> None:
    (chunk,) = telegram.render(OutboundMessage(text="a **b**"))
    again = json.loads(telegram.with_repeat_notice(chunk))
    (bold,) = again["entities"]
    assert again["text"][bold["offset"] :] == "b"
    assert "repeat" in again["text"]
    assert "entities" not in json.loads(telegram.without_formatting(chunk))


def test_two_blocks_of_code_stay_two() -> None:
    pieces = parse_markdown("```\na\n```\n\n```\nb\n```")
    assert [piece.frame for piece in pieces] == [CodeFrame(), CodeFrame()]
    (chunk,) = telegram.render(OutboundMessage(text="```\na\n```\n\n```\nb\n```"))
    assert len(json.loads(chunk)["entities"]) == 2
