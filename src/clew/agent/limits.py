"""
Time limits for developers' code: toolsets, and an agent's own functions.

A timeout there is reported with its place and is not blamed on the provider.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, WrapperToolset

from clew.agent.provider_errors import AgentCodeTimeout, ToolsetError
from clew.errors import ClewError
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pydantic_ai import RunContext
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model, StreamedResponse
    from pydantic_ai.toolsets import ToolsetTool


class CodeLimits(Record):
    """Time limits for developers' code."""

    #: For a toolset to open and to list its tools.
    toolset: timedelta = timedelta(seconds=60)
    #: For an agent's functions around a request: instructions, hooks, history processors.
    agent: timedelta = timedelta(seconds=60)

    @property
    def preparation_seconds(self) -> float:
        """Return the seconds for everything before a request."""
        return (self.toolset + self.agent).total_seconds()


def limit_toolsets(toolset: AbstractToolset[Any], limit: timedelta) -> AbstractToolset[Any]:
    """Return the toolset with a time limit for each one in it that may block."""

    def wrap_toolset(leaf: AbstractToolset[Any]) -> AbstractToolset[Any]:
        kind = type(leaf)
        plain = kind.__aenter__ is AbstractToolset.__aenter__ and (
            kind.get_tools is FunctionToolset.get_tools
        )
        return leaf if plain else _TimedToolset(leaf, limit)

    return toolset.visit_and_replace(wrap_toolset)


@dataclass
class _TimedToolset(WrapperToolset[Any]):
    """Toolset that fails with its name if it does not open or list its tools in time."""

    limit: timedelta

    async def __aenter__(self) -> Self:
        async with self._report_errors("could not be opened"):
            await super().__aenter__()
        return self

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        async with self._report_errors("could not list its tools"):
            return await super().get_tools(ctx)
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def _report_errors(self, what: str) -> AsyncGenerator[None]:
        """
        Apply the time limit.

        :raises ToolsetError: if it is exceeded, or the toolset fails
        """
        name = self.wrapped.id or self.wrapped.label
        seconds = self.limit.total_seconds()
        # In this task: some toolsets must be closed by the task that opened them.
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                yield
        except ClewError:
            raise
        except TimeoutError as error:
            late = f"within {seconds:g} s (tools.ready_timeout)" if deadline.expired() else error
            raise ToolsetError(f"the toolset {name} {what}: {_describe_timeout(late)}") from error
        except Exception as error:
            raise ToolsetError(f"the toolset {name} {what}: {_describe_error(error)}") from error


def _describe_timeout(said: object) -> str:
    return f"it did not come {said}" if isinstance(said, str) else _describe_error(said)


def _describe_error(error: object) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


@dataclass
class RequestTimeouts(AbstractCapability[Any]):
    """Timeouts of one request, separate for the provider and for the agent's own code."""

    limits: CodeLimits
    #: Seconds that a provider may be silent.
    silence: float = 0.0
    _deadline: asyncio.Timeout | None = None
    _is_waiting: bool = False
    _place: str = field(default="before the model was asked")

    def get_wrapper_model(self, model: Model) -> Model:
        return _TimedModel(model, self)

    @asynccontextmanager
    async def limit_request(self, silence: float) -> AsyncGenerator[asyncio.Timeout]:
        """
        Limit one request: its preparation, the provider's silence, and the code after it.

        :raises AgentCodeTimeout: if something other than the provider took too long
        """
        self.silence, self._is_waiting, self._place = silence, False, "before the model was asked"
        self._deadline = deadline = asyncio.timeout(self.limits.preparation_seconds)
        try:
            async with deadline:
                yield deadline
        except TimeoutError as error:
            if self._is_waiting or not deadline.expired():
                raise
            raise AgentCodeTimeout(self._place, self.limits.agent.total_seconds()) from error
        finally:
            self._deadline = None

    @asynccontextmanager
    async def limit_code(self, place: str, seconds: float) -> AsyncGenerator[None]:
        """
        Limit the agent's own code outside of requests.

        :raises AgentCodeTimeout: if it takes too long
        """
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                yield
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise AgentCodeTimeout(place, seconds) from error

    def start_provider_wait(self) -> None:
        """Switch to the provider's limit: the request is sent."""
        self._is_waiting = True
        self._reschedule_deadline(self.silence)

    def end_provider_wait(self) -> None:
        """Switch to the limit of the agent's own code: the provider is done."""
        self._is_waiting, self._place = False, "after the model had answered"
        self._reschedule_deadline(self.limits.agent.total_seconds())

    def _reschedule_deadline(self, seconds: float) -> None:
        if self._deadline is not None and not self._deadline.expired():
            self._deadline.reschedule(asyncio.get_running_loop().time() + seconds)


class _TimedModel(WrapperModel):
    """Model that reports the start and end of its requests to the timeouts."""

    def __init__(self, wrapped: Model, clock: RequestTimeouts) -> None:
        super().__init__(wrapped)
        self._timeouts = clock

    async def request(self, *arguments: Any, **more: Any) -> ModelResponse:
        self._timeouts.start_provider_wait()
        response = await super().request(*arguments, **more)
        self._timeouts.end_provider_wait()
        return response

    @asynccontextmanager
    async def request_stream(
        self, *arguments: Any, **more: Any
    ) -> AsyncGenerator[StreamedResponse]:
        self._timeouts.start_provider_wait()
        async with super().request_stream(*arguments, **more) as stream:
            yield stream
        self._timeouts.end_provider_wait()
