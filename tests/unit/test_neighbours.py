"""Joined neighbours are what the library would have joined."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from pydantic_ai.messages import (
    CompactionPart,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
    repair_messages,
)

from clew.agent.alternation import alternate_roles
from clew.agent.messages import extract_text, make_missing_response
from clew.agent.neighbours import join_neighbours

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage


def kinds() -> list[list[ModelMessage]]:
    """Messages of each kind, by new objects."""
    return [
        [ModelRequest(parts=[UserPromptPart("a")])],
        [ModelRequest(parts=[UserPromptPart("b"), SystemPromptPart("c")])],
        [ModelRequest(parts=[SystemPromptPart("d")])],
        [ModelRequest(parts=[UserPromptPart("e")], instructions="f")],
        [ModelRequest(parts=[CompactionPart(content="g")])],
        [ModelResponse(parts=[TextPart("h")])],
        [ModelResponse(parts=[TextPart("i")], model_name="j", provider_name="k")],
        [ModelResponse(parts=[ThinkingPart("l")])],
        [make_missing_response("m")],
        [
            ModelResponse(parts=[ToolCallPart("n", {}, "o")]),
            ModelRequest(parts=[ToolReturnPart("n", "p", "o")]),
        ],
    ]


def what_is_sent(messages: Sequence[ModelMessage]) -> list[object]:
    return [
        (type(one), one.parts, one.instructions if isinstance(one, ModelRequest) else None)
        for one in repair_messages(messages)
    ]


def test_the_library_sends_the_same() -> None:
    assert [seed for seed in range(200) if not sends_the_same(seed)] == []


def sends_the_same(seed: int) -> bool:
    rng = random.Random(seed)
    messages = [
        message
        for _ in range(rng.randrange(20))
        for message in rng.choice(rng.choice([kinds(), kinds()[:3], kinds()[5:6]]))
    ]
    joined = join_neighbours(messages)
    same_end = joined[-1:] == messages[-1:]
    return same_end and what_is_sent(joined) == what_is_sent(messages)


def test_messages_in_a_row_become_one_before_the_last() -> None:
    row = [ModelRequest(parts=[UserPromptPart(f"{n}")]) for n in range(1000)]
    joined = join_neighbours(row)
    assert len(joined) == 2
    assert joined[1] is row[-1]
    (sent,) = alternate_roles(joined)
    assert extract_text(sent) == "\n\n".join(f"{n}" for n in range(1000))
