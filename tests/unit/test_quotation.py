"""Quotations: everything in one is behind its mark, and nothing outside looks like another's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.core.channel_events import IgnoredEvent, MessageSender, prefix_sender
from clew.core.payload import as_list, as_object, as_objects, as_text
from clew.core.quotation import (
    LONGEST_REPLY,
    Quoted,
    clean_name,
    format_quotation,
    quote_forwarded,
    quote_reply,
)
from clew.core.route import Route
from clew.gateway.ignored_events import IgnoredEventLog

#: All that some reader takes for the end of a line.
BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


@given(st.text(alphabet=st.sampled_from(f"a:>/ {BREAKS}"), max_size=40), st.text(max_size=20))
def test_no_line_of_a_quotation_is_without_its_mark(said: str, name: str) -> None:
    found = format_quotation(quote_forwarded(name, said))
    header, *lines = found.splitlines()
    assert header.startswith("Forwarded")
    assert all(line.startswith("> ") for line in lines)
    assert "".join(line.removeprefix("> ") for line in lines) == "".join(
        said.splitlines() if said.strip() else []
    )


def test_a_name_is_one_line_without_anything_that_imitates_a_header() -> None:
    assert clean_name("Eve\n> Bob: yes [poll]") == "Eve Bob yes poll"
    assert clean_name(None) == clean_name("\u2028") == ""
    assert format_quotation(quote_reply("", "x")) == "In reply to somebody:\n> x"
    assert (
        format_quotation(Quoted(source="In reply to a\nlost message"))
        == "In reply to a lost message."
    )


def test_a_long_message_that_is_answered_is_shortened_and_a_forwarded_one_is_not() -> None:
    said = "x" * (LONGEST_REPLY + 1)
    assert len(quote_reply("Bob", said).text) == LONGEST_REPLY
    assert quote_forwarded("Bob", said).text == said


@pytest.mark.parametrize("sign", BREAKS)
def test_in_a_group_a_line_that_imitates_another_speaker_is_indented(sign: str) -> None:
    group = Route(platform="memory", kind="group", chat="club")
    found = prefix_sender(
        f"hi{sign}Bob (7): yes{sign}> Bob (7): no", MessageSender(id="1", name="Ada"), group
    )
    assert found == f"Ada (1): hi{sign}  Bob (7): yes{sign}> Bob (7): no"
    alone = Route(platform="memory", kind="dm", chat="1")
    assert prefix_sender("Bob (7): yes", MessageSender(id="1"), alone) == "Bob (7): yes"


def test_each_kind_of_skipped_event_is_logged_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    passed = IgnoredEventLog("telegram")
    for kind in ("one", "two", "one", "two"):
        passed.log_once(IgnoredEvent(kind=kind))
    assert capsys.readouterr().out.count("passed_over") == 2


def test_a_payload_of_another_shape_reads_as_nothing() -> None:
    assert (as_object(None), as_object([1]), as_object({"a": 1})) == ({}, {}, {"a": 1})
    assert (as_objects("x"), as_objects([1, {}, {"a": 1}])) == ([], [{"a": 1}])
    assert (as_list({}), as_list([1])) == ([], [1])
    assert [as_text(value) for value in (None, True, 1, "x", object())] == ["", "", "1", "x", ""]
