"""Comparison of histories, independent of white space and message bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.core.attachments import FetchedFile
from clew.core.client_history import (
    HistoryMessage,
    Speaker,
    drop_blank_messages,
    history_digest,
    is_answer,
    split_last_answer,
)

TALK = [
    HistoryMessage("system", "be brief"),
    HistoryMessage("user", "one"),
    HistoryMessage("assistant", "first"),
]
PICTURE = FetchedFile(id="att_1", name="image", media_type="image/png", content=b"a dot")
SPEAKERS: list[Speaker] = ["system", "user", "assistant"]
HISTORIES = st.lists(
    st.tuples(st.sampled_from(SPEAKERS), st.text("ab \n", min_size=1, max_size=6)).map(
        lambda said: HistoryMessage(*said)
    ),
    max_size=6,
)


def test_the_last_answer_is_split_from_the_history() -> None:
    assert split_last_answer(TALK) == (TALK[:2], "first")
    assert split_last_answer(TALK[:2]) == (TALK[:2], "")
    assert split_last_answer([*TALK, HistoryMessage("assistant", "and\nmore")]) == (
        TALK[:2],
        "first and more",
    )
    assert split_last_answer([]) == ([], "")


@pytest.mark.parametrize(
    "other",
    [
        [HistoryMessage("system", " be  brief\n"), *TALK[1:]],
        [HistoryMessage("system", "be"), HistoryMessage("system", "brief"), *TALK[1:]],
    ],
    ids=["white space", "split"],
)
def test_white_space_and_the_bounds_of_messages_make_no_difference(
    other: list[HistoryMessage],
) -> None:
    assert history_digest("me", other) == history_digest("me", TALK)


@pytest.mark.parametrize(
    "other",
    [
        TALK[1:],
        [*TALK, HistoryMessage("user", "two")],
        [*TALK[:2], HistoryMessage("assistant", "First")],
        [HistoryMessage("user", "be brief"), *TALK[1:]],
        [TALK[0], HistoryMessage("user", "one first")],
        [TALK[0], HistoryMessage("user", "one", (PICTURE,)), TALK[2]],
    ],
    ids=["shorter", "longer", "other words", "another speaker", "run together", "a file"],
)
def test_everything_else_makes_one(other: list[HistoryMessage]) -> None:
    assert history_digest("me", other) != history_digest("me", TALK)


def test_histories_of_two_callers_differ() -> None:
    assert history_digest("me", TALK) != history_digest("you", TALK)


@given(HISTORIES)
def test_adding_a_question_is_the_same_before_and_after_it_was_sent(
    history: list[HistoryMessage],
) -> None:
    said = drop_blank_messages([*history, HistoryMessage("user", "next")])
    answered = drop_blank_messages([*said, HistoryMessage("assistant", "fine")])
    assert history_digest("me", split_last_answer(answered)[0]) == history_digest("me", said)


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
