"""The built-in ``offline`` model: scripted answers, without key and network."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.usage import RequestUsage

from clew.agent.messages import extract_text
from clew.core.text import truncate_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pydantic_ai.messages import ModelMessage

OFFLINE_NAME = "offline"

_HELP_TEXT = (
    "I am the offline model: I answer by a script, so that everything can be tried without a key. "
    "Say anything and I repeat it; ask “what did I say?” and I list what you have told me; "
    "write call TOOL {JSON} and I call a tool. clew setup chooses a real one."
)
#: The prompt of a summary, and each message in it.
_SUMMARY_PROMPT_PATTERN = re.compile(
    r".*Write only the summary\.\s*<messages>\n(?P<messages>.*)</messages>"
    r"(?:.*<previous-summary>\n## Intent\n(?P<before>.*)\n</previous-summary>)?.*",
    re.DOTALL,
)
_MESSAGE_PATTERN = re.compile(r'<message role="(\w+)"[^>]*>\n(.*?)\n</message>', re.DOTALL)
_CALL_PATTERN = re.compile(
    r"\s*(?:please )?/?call\s+(\w+)\s*(\{.*\})?\s*", re.DOTALL | re.IGNORECASE
)


def make_offline_model() -> FunctionModel:
    """Return a model with plain and streamed requests."""
    return FunctionModel(_answer_request, stream_function=_stream_answer, model_name=OFFLINE_NAME)


async def _answer_request(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    answer = _make_answer(messages, info)
    usage = RequestUsage(
        input_tokens=sum(len(extract_text(message)) for message in messages) // 3,
        output_tokens=len(str(answer.parts[0])) // 3,
    )
    return ModelResponse(
        parts=answer.parts, usage=usage, model_name=OFFLINE_NAME, finish_reason="stop"
    )


async def _stream_answer(
    messages: list[ModelMessage], info: AgentInfo
) -> AsyncIterator[str | DeltaToolCalls]:
    (part,) = _make_answer(messages, info).parts
    if isinstance(part, ToolCallPart):
        yield {0: DeltaToolCall(name=part.tool_name, json_args=part.args_as_json_str())}
        return
    assert isinstance(part, TextPart)
    for word in re.findall(r"\S+\s*", part.content):
        yield word


def _make_answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    last = messages[-1]
    if isinstance(last, ModelRequest) and not isinstance(last.parts[-1], UserPromptPart):
        return _make_text_response(
            f"The tool answered: {'; '.join(_extract_results(last)) or 'nothing'}"
        )
    said = [text for message in messages for text in _extract_user_texts(message)]
    text = said[-1] if said else ""
    if asked := _SUMMARY_PROMPT_PATTERN.fullmatch(text):
        return _make_text_response(
            _make_summary(_MESSAGE_PATTERN.findall(asked["messages"]), before=asked["before"] or "")
        )
    if call := _CALL_PATTERN.fullmatch(text):
        return _make_call_response(call, info)
    if re.search(r"\b(what|wha?t) (did|have) i (say|said|tell|told)", text, re.IGNORECASE):
        return _make_text_response(_list_user_texts(said[:-1]))
    if re.fullmatch(r"\W*(help|hello|hi)?\W*", text, re.IGNORECASE):
        return _make_text_response(_HELP_TEXT)
    return _make_text_response(f"You said: {text}")


def _extract_user_texts(message: ModelMessage) -> list[str]:
    """Return the user texts of a request, which may hold several messages and results."""
    parts = [part for part in message.parts if isinstance(part, UserPromptPart)]
    return [extract_text(ModelRequest(parts=[part])) for part in parts]


def _make_text_response(text: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)])


def _extract_results(request: ModelRequest) -> list[str]:
    return [
        truncate_text(part.model_response_str(), 500)
        for part in request.parts
        if isinstance(part, ToolReturnPart)
    ]


def _make_summary(messages: list[tuple[str, str]], *, before: str) -> str:
    lines = [f"- {role}: {truncate_text(' '.join(text.split()), 200)}" for role, text in messages]
    return "\n".join(["## Intent", *[*before.splitlines(), *lines][-40:]])


def _list_user_texts(said: list[str]) -> str:
    if not said:
        return "You have not told me anything yet."
    return "You told me: " + "; ".join(truncate_text(text, 200) for text in said)


def _make_call_response(call: re.Match[str], info: AgentInfo) -> ModelResponse:
    name, args = call[1], call[2] or "{}"
    known = sorted(tool.name for tool in info.function_tools)
    if name not in known:
        return _make_text_response(
            f"There is no tool {name!r}. I can call: {', '.join(known) or 'none'}."
        )
    try:
        json.loads(args)
    except ValueError as error:
        return _make_text_response(f"The arguments are no JSON: {error}")
    return ModelResponse(parts=[ToolCallPart(tool_name=name, args=args)])
