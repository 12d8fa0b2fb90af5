"""Noticing that a model goes round in circles: the same calls with the same results, for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai.messages import BaseToolReturnPart, ModelRequest, ModelResponse, ToolCallPart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage

#: Steps in a row that may be the same, the last one excluded.
MOST = 5

_Step = list[tuple[str, str]]


def goes_round(messages: Sequence[ModelMessage], *, most: int = MOST) -> str | None:
    """
    The tools of the last step, if the last ``most`` steps were the same; else ``None``.

    Each asked for the same tools with the same arguments and got the same results, and nobody said
    anything in between.
    """
    last = _step(messages, len(messages))
    if last is None:
        return None
    steps = (_step(messages, len(messages) - 2 * back) for back in range(1, most))
    if any(step != last for step in steps):
        return None
    return ", ".join(dict.fromkeys(tool for tool, _ in last[: len(last) // 2]))


def _step(messages: Sequence[ModelMessage], end: int) -> _Step | None:
    """The calls and results of the step that ends before ``end``; ``None`` for anything else."""
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
