"""Detection of loops: the model repeats the same calls with the same results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai.messages import BaseToolReturnPart, ModelRequest, ModelResponse, ToolCallPart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage

#: Number of identical steps in a row that ends the turn.
MAX_REPEATS = 5

_StepContent = list[tuple[str, str]]


def find_repeated_calls(messages: Sequence[ModelMessage], *, most: int = MAX_REPEATS) -> str | None:
    """
    Return the tools of the last step if the last ``most`` steps were identical.

    Each called the same tools with the same arguments and got the same results, and no user
    message came in between. Otherwise return ``None``.
    """
    last = _read_step(messages, len(messages))
    if last is None:
        return None
    steps = (_read_step(messages, len(messages) - 2 * back) for back in range(1, most))
    if any(step != last for step in steps):
        return None
    return ", ".join(dict.fromkeys(tool for tool, _ in last[: len(last) // 2]))


def _read_step(messages: Sequence[ModelMessage], end: int) -> _StepContent | None:
    """Return calls and results of the step that ends before ``end``; else ``None``."""
    if end < 2:
        return None
    response, request = messages[end - 2 : end]
    if not isinstance(response, ModelResponse) or not isinstance(request, ModelRequest):
        return None
    if not all(isinstance(part, BaseToolReturnPart) for part in request.parts):
        return None
    calls = [
        (part.tool_name, part.args_as_json_str())
        for part in response.parts
        if isinstance(part, ToolCallPart)
    ]
    results = [
        (part.tool_name, part.model_response_str())
        for part in request.parts
        if isinstance(part, BaseToolReturnPart)
    ]
    return [*calls, *results] if calls else None
