"""The provider, and the tools: what they are asked for follows from the text of the messages."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent, ModelHTTPError, RunContext, Tool
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models.function import AgentInfo

    from tests.simulation.chances import Chances

#: A message: its key (conversation 3, message 7), and the tools to call, step by step.
_SAID = re.compile(r"(c\d+m\d+):([\w ;]*)")
#: Effect of each tool; ``pay`` needs a person's word.
EFFECTS = {"look": "pure", "put": "idempotent", "send": "once", "wipe": "ask", "pay": "once"}


def texts_of(message: ModelMessage) -> list[str]:
    """Return what people have said in a message."""
    parts = [part for part in message.parts if isinstance(part, UserPromptPart)]
    return [text for part in parts for text in split_texts(part)]


def split_texts(part: UserPromptPart) -> list[str]:
    """Return the texts of a person's message."""
    content = part.content
    return [content] if isinstance(content, str) else [str(each) for each in content]


def respond(messages: Sequence[ModelMessage], number: int) -> ModelResponse:
    """Return the next response: the calls of the next step, or an answer that names all keys."""
    keys: list[str] = []
    steps: list[list[str]] = []
    done = 0
    for message in messages:
        if isinstance(message, ModelResponse):
            if message.tool_calls:
                done += 1
            else:
                keys, steps, done = [], [], 0
            continue
        for key, plan in (found for text in texts_of(message) for found in _SAID.findall(text)):
            keys.append(key)
            steps += [step.split() for step in plan.split(";") if step.strip()]
    if done < len(steps):
        calls = [
            ToolCallPart(tool, {"what": f"{keys[-1]} {number}"}, f"call_{number}_{place}")
            for place, tool in enumerate(steps[done])
        ]
        return ModelResponse(parts=calls)
    return ModelResponse(parts=[TextPart(f"answer to {' '.join(keys)} #{number}")])


class Provider:
    """A provider over a network: slow, failing, or cut off in the middle."""

    def __init__(self, chances: Chances, sent: Callable[[Sequence[ModelMessage]], None]) -> None:
        self._chances, self._sent = chances, sent
        self.requests = 0

    def make_model(self) -> FunctionModel:
        """Return the model of one process."""
        return FunctionModel(self._ask, stream_function=self._stream, model_name="simulated")

    async def _ask(self, messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        await asyncio.sleep(0.02 + self._chances.delay(0.5))
        self.requests += 1
        number = self.requests
        self._sent(messages)
        if self._chances.fault("slow model"):
            await asyncio.sleep(self._chances.delay(12.0))
        if self._chances.fault("model error"):
            raise ModelHTTPError(503, "simulated")
        await asyncio.sleep(0.02 + self._chances.delay(0.8))
        return respond(messages, number)

    async def _stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        response = await self._ask(messages, info)
        for place, part in enumerate(response.parts):
            if isinstance(part, TextPart):
                half = len(part.content) // 2
                yield part.content[:half]
                await asyncio.sleep(self._chances.delay(0.3))
                if self._chances.fault("cut stream"):
                    raise ModelHTTPError(502, "simulated")
                yield part.content[half:]
            elif isinstance(part, ToolCallPart):
                yield {
                    place: DeltaToolCall(
                        part.tool_name, part.args_as_json_str(), tool_call_id=part.tool_call_id
                    )
                }


def make_agent(chances: Chances, acted: Callable[[str, str], None]) -> Agent[None, str]:
    """Return the agent of every process; ``acted`` is told each time a tool has its effect."""
    return Agent(
        instructions="Do it.", tools=[_make_tool(name, chances, acted) for name in EFFECTS],
        retries=3,
    )  # fmt: skip


def _make_tool(name: str, chances: Chances, acted: Callable[[str, str], None]) -> Tool[Any]:
    async def act(ctx: RunContext[Any], what: str) -> str:
        """Do something."""
        await asyncio.sleep(chances.delay(0.4))
        assert ctx.tool_call_id is not None
        acted(name, ctx.tool_call_id)
        await asyncio.sleep(chances.delay(0.4))
        return f"{name} {what}"

    return Tool(act, name=name, metadata={"effect": EFFECTS[name]}, requires_approval=name == "pay")
