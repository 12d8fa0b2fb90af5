"""When two histories are the same, whatever clients do to white space and message bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.core.history import Said, Speaker, asked, digest, is_answer, without_blanks

TALK = [Said("system", "be brief"), Said("user", "one"), Said("assistant", "first")]
SPEAKERS: list[Speaker] = ["system", "user", "assistant"]
HISTORIES = st.lists(
    st.builds(Said, st.sampled_from(SPEAKERS), st.text("ab \n", min_size=1, max_size=6)), max_size=6
)


def test_what_was_asked_ends_before_the_last_answer() -> None:
    assert asked(TALK) == (TALK[:2], "first")
    assert asked(TALK[:2]) == (TALK[:2], "")
    assert asked([*TALK, Said("assistant", "and\nmore")]) == (TALK[:2], "first and more")
    assert asked([]) == ([], "")


@pytest.mark.parametrize(
    "other",
    [
        [Said("system", " be  brief\n"), *TALK[1:]],
        [Said("system", "be"), Said("system", "brief"), *TALK[1:]],
    ],
    ids=["white space", "split"],
)
def test_white_space_and_the_bounds_of_messages_make_no_difference(other: list[Said]) -> None:
    assert digest("me", other) == digest("me", TALK)


@pytest.mark.parametrize(
    "other",
    [
        TALK[1:],
        [*TALK, Said("user", "two")],
        [*TALK[:2], Said("assistant", "First")],
        [Said("user", "be brief"), *TALK[1:]],
        [TALK[0], Said("user", "one first")],
    ],
    ids=["shorter", "longer", "other words", "another speaker", "run together"],
)
def test_everything_else_makes_one(other: list[Said]) -> None:
    assert digest("me", other) != digest("me", TALK)


def test_histories_of_two_callers_differ() -> None:
    assert digest("me", TALK) != digest("you", TALK)


@given(HISTORIES)
def test_adding_a_question_is_the_same_before_and_after_it_was_sent(history: list[Said]) -> None:
    said = without_blanks([*history, Said("user", "next")])
    answered = without_blanks([*said, Said("assistant", "fine")])
    assert digest("me", asked(answered)[0]) == digest("me", said)


@pytest.mark.parametrize(
    ("heard", "texts", "same"),
    [
        ("hello", ["hello"], True),
        ("hello", ["Hello"], False),
        ("I look. Nothing.", ["I look.", "Nothing."], True),
        ("Nothing.", ["I look.", "Nothing."], True),
        ("I look.", ["I look.", "Nothing."], False),
        ("Nothing.", ["", "Nothing.", " "], True),
        ("", [], True),
        ("", ["hello"], False),
        ("hello", [], False),
    ],
)
def test_an_answer_is_known_as_streamed_and_as_plain(
    heard: str, texts: list[str], same: bool
) -> None:
    assert is_answer(heard, texts) is same
