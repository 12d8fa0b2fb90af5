"""Each line of an export gives back to the letter what was stored, and none of the secrets."""

from __future__ import annotations

import json
from datetime import timedelta, timezone
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.core.export_format.redaction import ExportRedactor
from clew.core.export_format.schema import decode_line, embed_json, encode_line, extract_json
from clew.core.export_format.sealed_lines import (
    LineSealer,
    MalformedLine,
    check_seal,
    encode_json,
    parse_line,
)
from clew.engine.readable_export import html, markdown
from clew.engine.readable_export.document import (
    BlockReader,
    CollapsibleBlock,
    HeadingBlock,
    MessageBlock,
    NoteBlock,
    extract_text,
)
from tests.exported import conversation, made, said_in

if TYPE_CHECKING:
    from collections.abc import Sequence

WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_json_comes_back_as_it_was_stored_however_it_was_written(
    value: Any, plain: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=plain, indent=indent)
    if not any(0xD800 <= ord(one) < 0xE000 for one in text):
        assert extract_json(json.loads(encode_json(embed_json(text)))) == text


@pytest.mark.parametrize(
    "text",
    [
        '{"$text":"x"}', '{"a":1,"a":2}', "1e2", "1.0", "NaN", "-Infinity", "no JSON", "[" * 90_000,
        '"\\ud800"', "1" * 5000, "null", '{"b":{},"a":[]}',
    ],
)  # fmt: skip
def test_json_that_would_not_stay_the_same_is_kept_as_text(text: str) -> None:
    assert extract_json(embed_json(text)) == text


def test_every_record_comes_back_from_its_line() -> None:
    for kind, record in conversation(1, 6):
        line = json.loads(encode_json(encode_line(kind, record)))
        assert decode_line(kind, line) == record


def test_a_line_that_was_changed_says_nothing() -> None:
    line = LineSealer().seal_line("header", {"format": "x"})[:-1]
    assert check_seal(line) == json.loads(line)["sum"]
    with pytest.raises(MalformedLine):
        check_seal(line.replace(b'"x"', b'"y"'))
    with pytest.raises(MalformedLine):
        parse_line(b"[1]" + line[-74:])


@given(WORDS.filter(lambda text: len(text.strip()) > 5))
def test_a_secret_is_found_however_deep_it_is_quoted(secret: str) -> None:
    redaction = ExportRedactor([secret])
    told = f"<{secret}>"
    for _ in range(4):
        assert redaction.redact_text(told).count("********") == 1
        told = encode_json({"said": told})


def test_secrets_are_taken_out_of_words_but_not_out_of_ids() -> None:
    line = encode_line("entry", next(r for k, r in conversation(1, 2) if k == "entry"))
    line["message"] = {
        "parts": [{"content": "a cnv_0001 b", "timestamp": "cnv_0001"}],
        "cnv_0001": 1,
    }
    cleaned = ExportRedactor(["cnv_0001", "said"]).redact_line("entry", line)
    assert cleaned["conversation"] == "cnv_0001"
    assert cleaned["text"] == "what the user ******** as number 1"
    part = {"content": "a ******** b", "timestamp": "cnv_0001"}
    assert cleaned["message"] == {"parts": [part], "********": 1}
    assert cleaned["withheld"] is True
    assert ExportRedactor([]).redact_line("entry", line) == line
    assert "withheld" not in ExportRedactor(["nowhere"]).redact_line("entry", line)
    session = ExportRedactor(["summary"]).redact_line(
        "session", {"base": [{"message": "a summary"}]}
    )
    assert session == {"base": [{"message": "a ********"}]}


CALL = {
    "parts": [
        {"part_kind": "text", "content": "I look."},
        {"part_kind": "tool-call", "tool_name": "look", "args": {"at": "<b>"}},
        {"part_kind": "tool-call", "tool_name": "read", "args": '{"at": 1}'},
    ]
}


def reader(*, hours: int = 0) -> BlockReader:
    zone = timezone(timedelta(hours=hours))
    return BlockReader(lambda moment: moment.astimezone(zone))


def test_people_read_what_was_said_and_can_look_at_the_rest() -> None:
    entry = encode_line("entry", [r for k, r in conversation(1, 2) if k == "entry"][1])
    blocks = reader(hours=2)
    assert not list(blocks.read_line("turn", {"id": entry["turn"], "model": "openai-chat:llama3"}))
    said, look, read = blocks.read_line("entry", {**entry, "message": CALL})
    assert said == MessageBlock(
        who="Assistant", model="llama3", seq=2, at=entry["created_at"], time="2026-09-21 16:13",
        text=entry["text"], conversation="cnv_0001",
    )  # fmt: skip
    assert look == CollapsibleBlock(label="Tool call: look", text='{"at":"<b>"}')
    assert read == CollapsibleBlock(label="Tool call: read", text='{"at": 1}')
    (result,) = blocks.read_line("entry", {**entry, "role": "tool"})
    assert result == CollapsibleBlock(label="Result", text=entry["text"])
    returned = {"parts": [{"part_kind": "tool-return", "tool_name": "look", "content": {"a": 1}}]}
    (result,) = blocks.read_line("entry", {**entry, "role": "tool", "message": returned})
    assert result == CollapsibleBlock(label="Result: look", text='{"a":1}')
    (event,) = blocks.read_line("entry", {**entry, "kind": "attempt", "role": None})
    assert event == NoteBlock(text=f"No answer: {entry['text']}")
    assert list(blocks.read_line("entry", {**entry, "text": ""})) == [], "nothing but tool calls"
    assert extract_text({"$text": "[ 1]"}) == "[ 1]"
    assert extract_text(CALL) == "I look."


@pytest.mark.parametrize(
    ("scope", "sender", "text", "who", "said"),
    [
        ("local", None, "hello", "You", "hello"),
        ("chat:telegram:1", None, "hello", "User", "hello"),
        ("person:telegram:42", {"id": "42", "name": "Ada\n L."}, "hello", "Ada L.", "hello"),
        ("chat:telegram:1", {"id": "42", "name": "Ada"}, "Ada (42): hello", "Ada", "hello"),
        ("chat:telegram:1", {"id": "42", "name": ""}, "somebody (42): hi", "User", "hi"),
        ("chat:telegram:1", {"id": "42", "name": "A"}, "B (43): hi", "A", "B (43): hi"),
        ("chat:telegram:1", "odd", "hi", "User", "hi"),
    ],
)
def test_a_message_has_the_name_of_its_sender(
    scope: str, sender: object, text: str, who: str, said: str
) -> None:
    blocks = reader()
    line = said_in(made(0))[0][1]
    assert len(list(blocks.read_line("conversation", {**line, "scope": scope}))) == 1
    payload = {} if sender is None else {"sender": sender}
    assert list(blocks.read_line("input", {"payload": payload})) == []
    entry = encode_line("entry", next(r for k, r in conversation(1, 2) if k == "entry"))
    (found,) = blocks.read_line("entry", {**entry, "text": text})
    assert isinstance(found, MessageBlock)
    assert (found.who, found.text) == (who, said)


def test_the_head_of_a_conversation_says_where_it_came_from() -> None:
    blocks = reader()
    line = said_in(made(0))[0][1]
    (title,) = blocks.read_line(
        "conversation", {**line, "origin": "cnv_9", "origin_seq": 3, "routes": ["a:b:garden"]}
    )
    assert isinstance(title, HeadingBlock)
    assert ("from", "cnv_9, entry 3") in title.facts
    assert ("routes", "a:b:garden") in title.facts
    assert title.about == "Started 2026-09-21 14:13 · 0 entries"
    (named,) = blocks.read_line("conversation", {**line, "title": None, "routes": ["a:b:garden"]})
    assert isinstance(named, HeadingBlock)
    assert named.text == "garden"
    first, second = (line for kind, line in said_in(made(2)) if kind == "session")
    assert list(blocks.read_line("session", first)) == []
    assert [type(one) for one in blocks.read_line("session", second)] == [
        NoteBlock,
        CollapsibleBlock,
    ]
    (back,) = blocks.read_line("session", {**second, "opened_by": "rewind"})
    assert back == NoteBlock(text="The conversation was rewound here.")
    (grave,) = blocks.read_line("tombstone", said_in(made(tombstones=1))[0][1])
    assert "was deleted on 2026-09-21 14:13" in markdown.render_markdown_block(grave)
    (picture,) = blocks.read_line("attachment", {"name": "a.png", "media_type": "image/png"})
    assert picture == NoteBlock(text="Attachment: a.png (image/png)")
    assert list(blocks.read_line("usage", {})) == []


NASTY = [
    "</div></article><script>alert(1)</script>", "```\n# heading\n````", "![x](http://a/b)",
    "\x1b[2J",
    "\u202eevil", "<img src=x onerror=alert(1)>", "&lt;b&gt;", "'\"", "]]>", "--><b>", "\r\n\x00",
]  # fmt: skip


class Seen(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", NASTY)
def test_nothing_that_was_said_is_markup_in_a_page(text: str) -> None:
    said = [
        HeadingBlock(text=text, about=text, facts=((text, text),)),
        MessageBlock(who=text, model=text, seq=1, at="now", time="now", text="said"),
        CollapsibleBlock(label=text, text=text),
        NoteBlock(text=text),
    ]
    page = html.HEAD + "".join(map(html.render_html_block, said)) + html.FOOT
    seen = Seen()
    seen.feed(page)
    tags = {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "dl", "dt", "dd", "article",
        "header", "b", "span", "time", "div", "details", "summary", "pre", "p",
    }  # fmt: skip
    assert set(seen.tags) == tags
    assert "default-src 'none'" in page
    words = [word for word in text.split() if word.isprintable()]
    assert all(seen.text.count(word) >= 6 for word in words)


@pytest.mark.parametrize("text", NASTY)
def test_nothing_that_happened_is_markup_in_markdown(text: str) -> None:
    remark = markdown.render_markdown_block(NoteBlock(text=text))
    assert remark.count("\n") == 2
    for mark in "`*_[]<>&#|":
        assert mark not in remark.strip()[1:-1].replace(f"\\{mark}", "")
