"""The built-in ``offline`` model: needs no key and no network, answers by a fixed script."""

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

from clew.agent.messages import text_of
from clew.core.text import truncate_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pydantic_ai.messages import ModelMessage

NAME = "offline"

_HELP = (
    "I am the offline model: I answer by a script, so that everything can be tried without a key. "
    "Say anything and I repeat it; ask “what did I say?” and I list what you have told me; "
    "write call TOOL {JSON} and I call a tool. clew setup chooses a real one."
)
#: What a summariser is asked with, and each message in it.
_SUMMARY = re.compile(
    r".*Write only the summary\.\s*<messages>\n(?P<messages>.*)</messages>"
    r"(?:.*<previous-summary>\n## Intent\n(?P<before>.*)\n</previous-summary>)?.*",
    re.DOTALL,
)
_MESSAGE = re.compile(r'<message role="(\w+)"[^>]*>\n(.*?)\n</message>', re.DOTALL)
_CALL = re.compile(r"\s*(?:please )?/?call\s+(\w+)\s*(\{.*\})?\s*", re.DOTALL | re.IGNORECASE)


def offline_model() -> FunctionModel:
    """A model that can be asked plainly or streamed."""
    return FunctionModel(_request, stream_function=_stream, model_name=NAME)


async def _request(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    answer = _answer(messages, info)
    usage = RequestUsage(
        input_tokens=sum(len(text_of(message)) for message in messages) // 3,
        output_tokens=len(str(answer.parts[0])) // 3,
    )
    return ModelResponse(parts=answer.parts, usage=usage, model_name=NAME, finish_reason="stop")


async def _stream(
    messages: list[ModelMessage], info: AgentInfo
) -> AsyncIterator[str | DeltaToolCalls]:
    (part,) = _answer(messages, info).parts
    if isinstance(part, ToolCallPart):
        yield {0: DeltaToolCall(name=part.tool_name, json_args=part.args_as_json_str())}
        return
    assert isinstance(part, TextPart)
    for word in re.findall(r"\S+\s*", part.content):
        yield word


def _answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    last = messages[-1]
    if isinstance(last, ModelRequest) and not isinstance(last.parts[-1], UserPromptPart):
        return _say(f"The tool answered: {'; '.join(_results(last)) or 'nothing'}")
    said = [text for message in messages for text in _said(message)]
    text = said[-1] if said else ""
    if asked := _SUMMARY.fullmatch(text):
        return _say(_summary(_MESSAGE.findall(asked["messages"]), before=asked["before"] or ""))
    if call := _CALL.fullmatch(text):
        return _call(call, info)
    if re.search(r"\b(what|wha?t) (did|have) i (say|said|tell|told)", text, re.IGNORECASE):
        return _say(_recall(said[:-1]))
    if re.fullmatch(r"\W*(help|hello|hi)?\W*", text, re.IGNORECASE):
        return _say(_HELP)
    return _say(f"You said: {text}")


def _said(message: ModelMessage) -> list[str]:
    """What a person said in a message; one request may hold several messages and results."""
    parts = [part for part in message.parts if isinstance(part, UserPromptPart)]
    return [text_of(ModelRequest(parts=[part])) for part in parts]


def _say(text: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)])


def _results(request: ModelRequest) -> list[str]:
    return [
        truncate_text(part.model_response_str(), 500)
        for part in request.parts
        if isinstance(part, ToolReturnPart)
    ]


def _summary(messages: list[tuple[str, str]], *, before: str) -> str:
    lines = [f"- {role}: {truncate_text(' '.join(text.split()), 200)}" for role, text in messages]
    return "\n".join(["## Intent", *[*before.splitlines(), *lines][-40:]])


def _recall(said: list[str]) -> str:
    if not said:
        return "You have not told me anything yet."
    return "You told me: " + "; ".join(truncate_text(text, 200) for text in said)


def _call(call: re.Match[str], info: AgentInfo) -> ModelResponse:
    name, args = call[1], call[2] or "{}"
    known = sorted(tool.name for tool in info.function_tools)
    if name not in known:
        return _say(f"There is no tool {name!r}. I can call: {', '.join(known) or 'none'}.")
    try:
        json.loads(args)
    except ValueError as error:
        return _say(f"The arguments are no JSON: {error}")
    return ModelResponse(parts=[ToolCallPart(tool_name=name, args=args)])
