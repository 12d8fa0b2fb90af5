"""A model that goes round in circles is noticed, and no other."""

from __future__ import annotations

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from clew.agent.loop_detection import MAX_REPEATS, find_repeated_calls


def _said(text: str = "go on") -> ModelMessage:
    return ModelRequest(parts=[UserPromptPart(text)])


def _step(*results: str, page: int = 1) -> list[ModelMessage]:
    """One step with a call for each result."""
    calls = [
        ToolCallPart("look" if n == 0 else "read", {"page": page}, f"call_{n}")
        for n in range(len(results))
    ]
    returns = [
        ToolReturnPart(call.tool_name, result, call.tool_call_id)
        for call, result in zip(calls, results, strict=True)
    ]
    return [ModelResponse(parts=calls), ModelRequest(parts=returns)]


SAME = _step("busy")


@pytest.mark.parametrize(
    ("messages", "tools"),
    [
        ([_said(), *SAME * MAX_REPEATS], "look"),
        ([_said(), *_step("x"), *SAME * MAX_REPEATS], "look"),
        ([_said(), *_step("busy", "late") * MAX_REPEATS], "look, read"),
        ([_said(), *SAME * (MAX_REPEATS - 1)], None),
        (SAME * (MAX_REPEATS - 1), None),
        ([_said(), *SAME * (MAX_REPEATS - 1), *_step("done")], None),
        ([_said(), *SAME, *_step("x"), *SAME * (MAX_REPEATS - 1)], None),
        ([_said(), *SAME * 2, *_step("busy", page=2), *SAME * 2], None),
        ([_said(), *SAME * 2, _said("and?"), *SAME * 3], None),
        ([_said(), *SAME * MAX_REPEATS, ModelResponse(parts=[TextPart("so")]), _said()], None),
        ([_said()], None),
        ([], None),
    ],
)
def test_five_steps_in_a_row_that_are_the_same_are_a_circle(
    messages: list[ModelMessage], tools: str | None
) -> None:
    assert find_repeated_calls(messages) == tools
