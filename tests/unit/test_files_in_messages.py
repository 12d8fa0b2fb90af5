"""Files in messages reach a model by their content, whatever their names."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pydantic_ai.messages import BinaryContent, ModelRequest, TextContent, UserPromptPart

from clew.agent import messages
from clew.agent.attachments import collect_attachment_digests, insert_attachment_contents
from clew.agent.compactor import estimate_size
from clew.core.attachments import MAX_TEXT_CHARS, PICTURE, TEXT, display_kind, find_exceeded_limit
from clew.core.channel_events import InlineFile
from clew.core.ids import EntryId
from clew.wording import describe_oversized_file

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
FILE = InlineFile(line="[file att_1: a.png]", sha256="ab", name="a.png", kind=PICTURE, size=28)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (PNG, PICTURE),
        (b"\xff\xd8\xff\xe0", PICTURE),
        (b"GIF89a", PICTURE),
        (b"RIFF\0\0\0\0WEBPVP8 ", PICTURE),
        (PNG + bytes(5_000_000), None),
        ("naïve\n".encode(), TEXT),
        (b"\xef\xbb\xbfwith a mark", TEXT),
        (b"<svg/>", TEXT),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"\xff\xfb\x90", None),
        (b"PK\0\0", None),
        (b" \n", None),
        (b"", None),
    ],
)
def test_a_file_is_shown_as_what_it_is(content: bytes, kind: str | None) -> None:
    assert display_kind(content) == kind


def test_a_file_over_the_limit_is_refused_with_a_sentence() -> None:
    assert find_exceeded_limit(bytes(8_000_000)) is None
    assert find_exceeded_limit(bytes(8_000_001)) == 8_000_000
    assert describe_oversized_file("a.txt", 8_000_001, 8_000_000) == (
        "a.txt has 8,000,001 bytes; the limit for a file is 8,000,000 bytes"
    )


def _request(file: InlineFile) -> ModelRequest:
    said = ["look", file, "[file b.zip, told by name only]"]
    draft = messages.make_user_draft(EntryId("ent_1"), said, said_at=datetime.now(UTC))
    assert draft.text == f"look\n{file.line}\n[file b.zip, told by name only]"
    found = messages.load_message(draft.message)
    assert isinstance(found, ModelRequest)
    return found


def _content(message: object) -> list[object]:
    assert isinstance(message, ModelRequest)
    (part,) = message.parts
    assert isinstance(part, UserPromptPart)
    return list(part.content)


def test_a_picture_stands_behind_its_line_unless_the_model_only_reads_or_it_is_gone() -> None:
    stored = _request(FILE)
    assert collect_attachment_digests([stored]) == ["ab"]
    _, line, *_ = _content(stored)
    assert isinstance(line, TextContent)
    begin, end = ["look", FILE.line], ["[file b.zip, told by name only]"]
    shown = insert_attachment_contents(stored, {"ab": PNG})
    picture = BinaryContent(data=PNG, media_type="image/png")
    assert _content(shown) == [*begin, picture, *end]
    for contents, pictures in (({"ab": PNG}, False), ({}, True)):
        told = _content(insert_attachment_contents(stored, contents, pictures=pictures))
        assert [*told[:2], *told[3:]] == [*begin, *end]
        assert str(told[2]).startswith("(")
    # Nothing is guessed of what it takes before it is read.
    assert abs(estimate_size(shown).tokens - estimate_size(stored).tokens) < 20


def test_a_long_text_is_cut_in_its_middle_and_counted_as_it_is_sent() -> None:
    text = "word " * MAX_TEXT_CHARS
    file = replace(FILE, kind=TEXT, size=len(text))
    stored = _request(file)
    shown = insert_attachment_contents(stored, {"ab": text.encode()})
    content = str(_content(shown)[2])
    assert len(content) < MAX_TEXT_CHARS + 100
    assert "characters left out" in content
    assert content.endswith("[end of a.png]")
    assert abs(estimate_size(shown).tokens - estimate_size(stored).tokens) < 50
