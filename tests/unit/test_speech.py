"""A partly streamed answer is completed from the log, without repetition."""

from __future__ import annotations

import pytest

from clew.api.stream_reconciler import StreamedText, remaining_text


def said(*steps: tuple[list[str], str]) -> str | None:
    """Text that a client receives: per response the arrived pieces, and the text in the log."""
    speech, heard = StreamedText(), ""
    for pieces, text in steps:
        heard += "".join(map(speech.add_piece, pieces))
        missing = speech.reconcile(text)
        if missing is None:
            return None
        heard += missing
    return heard


NOTHING: list[str] = []
CASES: dict[str, tuple[list[tuple[list[str], str]], str]] = {
    "whole": ([(["a ", "b"], "a b")], "a b"),
    "nothing": ([(NOTHING, "a b")], "a b"),
    "begun": ([(["a "], "a b")], "a b"),
    "parts": ([(["a", "b"], "a\nb")], "ab"),
    "two": ([(["one"], "one"), (["two"], "two")], "one\n\ntwo"),
    "two from the log": ([(NOTHING, "one"), (NOTHING, "two")], "one\n\ntwo"),
    "silent": ([(["one"], "one"), (NOTHING, "")], "one"),
    "late": ([(NOTHING, ""), (["two"], "two")], "two"),
}


@pytest.mark.parametrize("case", CASES)
def test_missing_entries_come_from_the_log(case: str) -> None:
    steps, heard = CASES[case]
    assert said(*steps) == heard


def test_other_words_than_in_the_log_cannot_be_taken_back() -> None:
    assert said((["a c"], "a b")) is None
    assert said((["a b c"], "a b")) is None


def test_it_is_open_while_words_of_a_response_are_out() -> None:
    speech = StreamedText()
    assert not speech.has_partial_response
    speech.add_piece("a")
    assert speech.has_partial_response
    speech.reconcile("a")
    assert not speech.has_partial_response


@pytest.mark.parametrize(
    ("text", "beginning", "rest"),
    [("abc", "ab", "c"), ("a b\nc", "ab", "\nc"), ("abc", "", "abc"), ("ab", "abc", None)],
)
def test_the_rest_of_a_text(text: str, beginning: str, rest: str | None) -> None:
    assert remaining_text(text, beginning) == rest
