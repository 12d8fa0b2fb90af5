"""A model in this process, each of whose moments is a point."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from tests.line.plans import respond

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models.function import AgentInfo

    from tests.line.points import Points

    Respond = Callable[[Sequence[ModelMessage]], ModelResponse]


class Scripted:
    """Answers as its script says, and keeps what it was sent."""

    def __init__(self, points: Points, script: Respond = respond) -> None:
        self.sent: list[list[ModelMessage]] = []
        self.script = script
        self._points = points
        self.model = FunctionModel(
            self._whole, stream_function=self._in_pieces, model_name="scripted"
        )

    async def _whole(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        response = await self._asked(messages)
        await self._points.reach("model answers")
        return response

    async def _in_pieces(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        response = await self._asked(messages)
        for word in (response.text or "").split():
            yield f"{word} "
            await self._points.reach(f"piece {word!r}")
        for place, part in enumerate(response.parts):
            if isinstance(part, ToolCallPart):
                call = DeltaToolCall(
                    name=part.tool_name,
                    json_args=part.args_as_json_str(),
                    tool_call_id=part.tool_call_id,
                )
                yield {place: call}
                await self._points.reach(f"piece {part.tool_name}")

    async def _asked(self, messages: list[ModelMessage]) -> ModelResponse:
        self.sent.append(copy.deepcopy(messages))
        response = self.script(messages)
        await self._points.reach(f"model asked for {_what(response)}")
        return response


def _what(response: ModelResponse) -> str:
    return " ".join(call.tool_name for call in response.tool_calls) or "an answer"
