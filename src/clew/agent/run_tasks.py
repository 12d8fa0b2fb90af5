"""
Tracking of the tasks that a library run starts, so that none outlives the run.

Cancelled at the wrong moment, Pydantic AI leaves behind the task that holds the provider's
stream; when it is garbage-collected during another turn, that turn fails.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic_ai.capabilities import AbstractCapability

from clew.background import cancel_and_wait

if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities.abstract import WrapModelRequestHandler, WrapRunHandler
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult


@dataclass
class RunTaskTracker(AbstractCapability[Any]):
    """Tracker of the tasks of one run; ``cancel_remaining`` ends them."""

    _tasks: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])
    _is_closed: bool = False

    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: WrapRunHandler
    ) -> AgentRunResult[Any]:
        self._track_current_task()
        return await handler()

    async def wrap_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        handler: WrapModelRequestHandler,
    ) -> ModelResponse:
        self._track_current_task()
        return await handler(request_context)

    def _track_current_task(self) -> None:
        if self._is_closed:
            # Started too late to be cancelled by the tracker.
            raise asyncio.CancelledError
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def cancel_remaining(self) -> None:
        """Cancel the remaining tasks of the run and wait until they have ended."""
        self._is_closed = True
        await cancel_and_wait(*(self._tasks - {asyncio.current_task()}))
