"""
What a run of the library does in tasks of its own: none of them outlives the run.

Cancelled at the wrong moment, Pydantic AI leaves the task behind that holds the provider's stream;
when it is collected as garbage, in the midst of any other turn, that one fails.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic_ai.capabilities import AbstractCapability

if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities.abstract import WrapModelRequestHandler, WrapRunHandler
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult


@dataclass
class Beside(AbstractCapability[Any]):
    """Knows the tasks of one run; ``end`` ends them."""

    _tasks: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])
    _ended: bool = False

    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: WrapRunHandler
    ) -> AgentRunResult[Any]:
        self._know()
        return await handler()

    async def wrap_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        handler: WrapModelRequestHandler,
    ) -> ModelResponse:
        self._know()
        return await handler(request_context)

    def _know(self) -> None:
        if self._ended:
            # It begins when nobody is left to end it.
            raise asyncio.CancelledError
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """Cancel what is left of the run, and wait until it has ended."""
        self._ended = True
        left = self._tasks - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
