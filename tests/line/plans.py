"""
Messages of people, and the answers of the model: a function of the messages alone.

``a: look read; pay`` is message *a*, which leads to a step with two calls, one with a third, and
then ``answer to a``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage

_SAID = re.compile(r"(\w+):(.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    key: str
    steps: tuple[tuple[str, ...], ...]


def parse(text: str) -> Said | None:
    found = _SAID.fullmatch(text)
    if found is None:
        return None
    steps = (tuple(step.split()) for step in found[2].split(";"))
    return Said(key=found[1], steps=tuple(step for step in steps if step))


def said_in(message: ModelMessage) -> list[Said]:
    """Return the people's texts in one message."""
    if not isinstance(message, ModelRequest):
        return []
    texts = [part.content for part in message.parts if isinstance(part, UserPromptPart)]
    return [said for text in texts if isinstance(text, str) and (said := parse(text))]


def respond(messages: Sequence[ModelMessage]) -> ModelResponse:
    """The next step of what was said last, or the answer to all that has none yet."""
    last = max(i for i, message in enumerate(messages) if said_in(message))
    said = said_in(messages[last])[-1]
    done = sum(1 for m in messages[last + 1 :] if isinstance(m, ModelResponse) and m.tool_calls)
    if done < len(said.steps):
        return ModelResponse(parts=[*_calls(said, done)])
    answered = max((i for i, m in enumerate(messages) if _is_answer(m)), default=-1)
    keys = [said.key for message in messages[answered + 1 :] for said in said_in(message)]
    return ModelResponse(parts=[TextPart(f"answer to {' '.join(keys)}")])


def _calls(said: Said, step: int) -> list[ToolCallPart]:
    return [
        ToolCallPart(tool, {"what": f"{said.key}{step}{place}"}, f"{said.key}-{step}-{place}")
        for place, tool in enumerate(said.steps[step])
    ]


def _is_answer(message: ModelMessage) -> bool:
    return isinstance(message, ModelResponse) and (message.text or "").startswith("answer to ")
