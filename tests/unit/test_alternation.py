"""Sent messages alternate, whatever the store holds."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from pydantic_ai.messages import (
    BinaryContent,
    CompactionPart,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from clew.agent.alternation import alternate_roles
from clew.agent.messages import extract_text, make_missing_response

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage


def user(*texts: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text) for text in texts])


def model(*texts: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text) for text in texts])


def test_messages_that_take_turns_stay_the_same_objects() -> None:
    messages: list[ModelMessage] = [user("a"), model("b"), user("c")]
    assert all(new is old for new, old in zip(alternate_roles(messages), messages, strict=True))


def test_neighbours_of_one_side_become_one() -> None:
    sent = alternate_roles([user("a"), user("b", "c"), model("d"), model("e"), user("f")])
    assert [extract_text(message) for message in sent] == ["a\n\nb\n\nc", "d\ne", "f"]


def test_a_summary_joins_what_follows_it() -> None:
    summary = ModelRequest(parts=[CompactionPart(content="so far")])
    sent = alternate_roles([summary, user("go on"), model("yes"), user("and?")])
    assert len(sent) == 3
    part = sent[0].parts[0]
    assert isinstance(part, UserPromptPart)
    assert "so far" in str(part.content)
    assert str(part.content).endswith("go on")


def test_pictures_stay_in_their_place() -> None:
    picture = BinaryContent(b"png", media_type="image/png")
    message = ModelRequest(parts=[UserPromptPart(["look", picture]), UserPromptPart("well?")])
    part = alternate_roles([message])[0].parts[0]
    assert isinstance(part, UserPromptPart)
    assert part.content == ["look", picture, "well?"]


def test_a_response_that_says_nothing_is_left_out() -> None:
    empty = ModelResponse(parts=[ThinkingPart("hm")])
    assert [extract_text(m) for m in alternate_roles([user("a"), empty, user("b")])] == ["a\n\nb"]


def test_the_person_begins() -> None:
    system = ModelRequest(parts=[SystemPromptPart("be kind")])
    sent = alternate_roles([system, model("welcome"), user("hi")])
    assert [extract_text(message) for message in sent] == ["The assistant began: welcome\n\nhi"]
    assert isinstance(sent[0].parts[0], SystemPromptPart)


def test_results_stay_right_after_their_calls() -> None:
    call = ModelResponse(parts=[ToolCallPart("look", {}, tool_call_id="1")])
    result = ModelRequest(parts=[ToolReturnPart("look", "seen", tool_call_id="1")])
    sent = alternate_roles([user("a"), call, result, user("b"), user("c")])
    assert [part.part_kind for part in sent[2].parts] == ["tool-return", "user-prompt"]
    assert extract_text(sent[2]) == "seen\nb\n\nc"


@pytest.mark.parametrize("seed", range(20))
def test_any_history_takes_turns_and_a_longer_one_begins_as_it_did(seed: int) -> None:
    rng = random.Random(seed)
    history: list[ModelMessage] = [
        rng.choice([user, model])(f"{seed}.{n}") for n in range(rng.randrange(1, 12))
    ]
    sent = alternate_roles(history)
    assert all(isinstance(one, ModelRequest) == (n % 2 == 0) for n, one in enumerate(sent))
    said = "\n".join(map(extract_text, sent))
    assert all(extract_text(message) in said for message in history)
    if isinstance(history[-1], ModelResponse):
        # Once the model has answered, nothing before its answer changes.
        longer = alternate_roles([*history, user("more"), model("yes"), user("last")])
        assert [extract_text(one) for one in longer[: len(sent)]][:-1] == [
            extract_text(one) for one in sent
        ][:-1]


def test_an_answer_that_came_after_all_takes_the_place_of_what_stood_for_it() -> None:
    sent = alternate_roles(
        [user("a"), make_missing_response("the reply was empty"), model("b"), user("c")]
    )
    assert [extract_text(message) for message in sent] == ["a", "b", "c"]
