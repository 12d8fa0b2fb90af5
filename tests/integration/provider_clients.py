"""The official clients of the three formats, behind one function that tells what they heard."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anthropic
import openai

if TYPE_CHECKING:
    from collections.abc import Iterable

    from anthropic.types import Message
    from openai.types.chat import ChatCompletion
    from openai.types.responses import Response

    from clew.testing import FakeProvider

TOOL = "add"
DESCRIPTION = "Add two numbers."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
}
MODEL = "fake-model"
TIMEOUT = 30.0


@dataclass(frozen=True, kw_only=True)
class Heard:
    """Answer as a client read it, in terms that all formats share."""

    text: str
    calls: tuple[tuple[str, str, object], ...] = ()
    thinking: str = ""
    finish: str | None
    #: Input without cached, output, cached.
    tokens: tuple[int, int, int]


def ask(
    provider: FakeProvider, format_: str, *, stream: bool, say: str = "go", timeout: float = TIMEOUT
) -> Heard:
    """One request through the official client, with one tool on offer; never retried."""
    asked = {"chat": _ask_chat, "responses": _ask_responses, "messages": _ask_messages}
    return asked[format_](provider, say, stream=stream, timeout=timeout)


def openai_client(provider: FakeProvider, timeout: float = TIMEOUT) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=provider.openai_url, api_key="sk-secret", max_retries=0, timeout=timeout
    )


def anthropic_client(provider: FakeProvider, timeout: float = TIMEOUT) -> anthropic.Anthropic:
    return anthropic.Anthropic(
        base_url=provider.anthropic_url, api_key="sk-secret", max_retries=0, timeout=timeout
    )


def _ask_chat(provider: FakeProvider, say: str, *, stream: bool, timeout: float) -> Heard:
    tool: Any = {
        "type": "function",
        "function": {"name": TOOL, "description": DESCRIPTION, "parameters": SCHEMA},
    }
    said: Any = [{"role": "user", "content": say}]
    with openai_client(provider, timeout) as client:
        if not stream:
            return _heard_chat(
                client.chat.completions.create(model=MODEL, messages=said, tools=[tool])
            )
        with client.chat.completions.stream(
            model=MODEL, messages=said, tools=[tool], stream_options={"include_usage": True}
        ) as events:
            return _heard_chat(events.get_final_completion())


def _heard_chat(completion: ChatCompletion) -> Heard:
    choice, usage = completion.choices[0], completion.usage
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    cached = usage.prompt_tokens_details.cached_tokens or 0
    calls = choice.message.tool_calls or ()
    return Heard(
        text=choice.message.content or "",
        calls=tuple(
            (call.id, call.function.name, _value(call.function.arguments))
            for call in calls
            if call.type == "function"
        ),
        thinking=getattr(choice.message, "reasoning_content", None) or "",
        finish=choice.finish_reason,
        tokens=(usage.prompt_tokens - cached, usage.completion_tokens, cached),
    )


def _ask_responses(provider: FakeProvider, say: str, *, stream: bool, timeout: float) -> Heard:
    tool: Any = {
        "type": "function",
        "name": TOOL,
        "description": DESCRIPTION,
        "parameters": SCHEMA,
        "strict": False,
    }
    with openai_client(provider, timeout) as client:
        if not stream:
            return _heard_responses(client.responses.create(model=MODEL, input=say, tools=[tool]))
        with client.responses.stream(model=MODEL, input=say, tools=[tool]) as events:
            return _heard_responses(events.get_final_response())


def _heard_responses(response: Response) -> Heard:
    usage = response.usage
    cached = usage.input_tokens_details.cached_tokens if usage else 0
    return Heard(
        text=response.output_text,
        calls=tuple(
            (item.call_id, item.name, _value(item.arguments))
            for item in response.output
            if item.type == "function_call"
        ),
        thinking=_joined(
            summary.text
            for item in response.output
            if item.type == "reasoning"
            for summary in item.summary
        ),
        finish=response.status,
        tokens=(usage.input_tokens - cached, usage.output_tokens, cached) if usage else (0, 0, 0),
    )


def _ask_messages(provider: FakeProvider, say: str, *, stream: bool, timeout: float) -> Heard:
    tool: Any = {"name": TOOL, "description": DESCRIPTION, "input_schema": SCHEMA}
    said: Any = [{"role": "user", "content": say}]
    with anthropic_client(provider, timeout) as client:
        if not stream:
            return _heard_messages(
                client.messages.create(model=MODEL, max_tokens=1000, messages=said, tools=[tool])
            )
        with client.messages.stream(
            model=MODEL, max_tokens=1000, messages=said, tools=[tool]
        ) as events:
            return _heard_messages(events.get_final_message())


def _heard_messages(message: Message) -> Heard:
    usage = message.usage
    return Heard(
        text=_joined(block.text for block in message.content if block.type == "text"),
        calls=tuple(
            (block.id, block.name, block.input)
            for block in message.content
            if block.type == "tool_use"
        ),
        thinking=_joined(b.thinking for b in message.content if b.type == "thinking"),
        finish=message.stop_reason,
        tokens=(usage.input_tokens, usage.output_tokens, usage.cache_read_input_tokens or 0),
    )


def _joined(texts: Iterable[str]) -> str:
    return "".join(texts)


def _value(arguments: str) -> object:
    """The arguments, or their text where they are not JSON."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments
