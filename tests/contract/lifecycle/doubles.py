"""Doubles of outside parts: a model, a summariser, plugins."""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage

from clew.agent.messages import dump_message, extract_text
from clew.hooks.specs import hookimpl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from pydantic_ai.models.function import AgentInfo, DeltaToolCalls

    from clew.agent.compactor import RunUsage
    from clew.agent.models import Model

    Answer = Callable[[list[ModelMessage]], ModelResponse]

#: Good by the rules of compaction: a heading, and long enough.
SUMMARY = "## Intent\nTo talk about the weather, at length.\n\n## Done\n" + "It was sunny. " * 20


def said(messages: Sequence[ModelMessage]) -> str:
    """The last thing that a person said."""
    parts = [part for message in messages for part in message.parts]
    return next(str(part.content) for part in reversed(parts) if isinstance(part, UserPromptPart))


def answered(text: str, *, tokens: int = 0) -> ModelResponse:
    """An answer to a request that counted so many tokens; 0: the provider does not say."""
    usage = RequestUsage(input_tokens=tokens, output_tokens=1 if tokens else 0)
    return ModelResponse(parts=[TextPart(text)], usage=usage, finish_reason="stop")


def calling(tool: str, *, tokens: int = 0, **arguments: object) -> ModelResponse:
    usage = RequestUsage(input_tokens=tokens, output_tokens=1 if tokens else 0)
    return ModelResponse(parts=[ToolCallPart(tool, arguments)], usage=usage)


def is_new_turn(messages: Sequence[ModelMessage]) -> bool:
    """Return whether the last message is a person's, not a tool's."""
    last = messages[-1]
    return isinstance(last, ModelRequest) and isinstance(last.parts[-1], UserPromptPart)


class Provider:
    """A model that answers by a function, and keeps what it was sent."""

    def __init__(self, answer: Answer | None = None, *, window: int | None = None) -> None:
        """``window``: the context window that it tells, in tokens."""
        self.answer: Answer = answer or (lambda messages: answered(f"You said: {said(messages)}"))
        self.sent: list[list[ModelMessage]] = []
        #: A request waits for it, where it is set.
        self.gate: asyncio.Event | None = None
        #: Set by each request.
        self.asked = asyncio.Event()
        self.model = FunctionModel(
            self._ask,
            stream_function=self._stream,
            model_name="provider",
            profile=None if window is None else {"context_window": window},
        )

    @property
    def wire(self) -> list[list[str]]:
        """Return the sent messages as JSON."""
        return [[dump_message(message) for message in request] for request in self.sent]

    async def _ask(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.sent.append(copy.deepcopy(messages))
        self.asked.set()
        if self.gate is not None:
            await self.gate.wait()
        return self.answer(messages)

    async def _stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        """In one piece; what it counted is not told."""
        for place, part in enumerate((await self._ask(messages, info)).parts):
            if isinstance(part, TextPart):
                yield part.content
            elif isinstance(part, ToolCallPart):
                yield {place: DeltaToolCall(part.tool_name, part.args_as_json_str())}


class Summariser:
    """A compactor that clears nothing, and summarises to ``SUMMARY``; counts its calls."""

    def __init__(self, *, seconds: float = 0.0) -> None:
        self.calls = 0
        self._seconds = seconds

    async def clear_results(
        self, messages: Sequence[ModelMessage], *, keep_from: int
    ) -> list[ModelMessage]:
        return list(messages)

    async def summarise_messages(
        self,
        messages: Sequence[ModelMessage],
        model: Model,
        *,
        window: int,
        focus: str | None,
        usage: RunUsage,
    ) -> str:
        self.calls += 1
        await asyncio.sleep(self._seconds)
        return SUMMARY


class NoteTaker:
    """A plugin that writes down what it is told of sessions: the hook, and what it was given."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, object]]] = []

    @hookimpl
    def on_session_finalize(self, session_id: str, platform: str) -> None:
        self.told.append(("finalize", {"session_id": session_id, "platform": platform}))

    @hookimpl
    def on_session_reset(self, session_id: str, platform: str) -> None:
        self.told.append(("reset", {"session_id": session_id, "platform": platform}))

    @hookimpl
    def pre_tool_call(self, session_id: str) -> None:
        self.told.append(("tool", {"session_id": session_id}))


def shape(messages: Sequence[ModelMessage]) -> list[str]:
    """Messages by their texts, for comparing."""
    return [extract_text(message) or "(summary)" for message in messages]
