"""
Time limits for the code that a developer brings: toolsets, and an agent's own functions.

What takes too long there is told by its name, and is no fault of the provider.
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

from clew.agent.failures import AgentCodeTooSlow, ToolsetFailed
from clew.errors import ClewError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pydantic_ai import RunContext
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model, StreamedResponse
    from pydantic_ai.toolsets import ToolsetTool


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeLimits:
    """How long the code that a developer brings may take."""

    #: A toolset, to be opened and to tell its tools.
    toolset: timedelta = timedelta(seconds=60)
    #: An agent's functions, before and after a request: instructions, hooks, history processors.
    agent: timedelta = timedelta(seconds=60)

    @property
    def preparation(self) -> float:
        """Seconds for all that comes before a request."""
        return (self.toolset + self.agent).total_seconds()


def bound_toolsets(toolset: AbstractToolset[Any], limit: timedelta) -> AbstractToolset[Any]:
    """Return the toolset with a time limit for each one in it that could wait for something."""

    def visit(leaf: AbstractToolset[Any]) -> AbstractToolset[Any]:
        kind = type(leaf)
        plain = kind.__aenter__ is AbstractToolset.__aenter__ and (
            kind.get_tools is FunctionToolset.get_tools
        )
        return leaf if plain else _BoundedToolset(leaf, limit)

    return toolset.visit_and_replace(visit)


@dataclass
class _BoundedToolset(WrapperToolset[Any]):
    """A toolset that is given up, by its name, when it does not come."""

    limit: timedelta

    async def __aenter__(self) -> Self:
        async with self._named("could not be opened"):
            await super().__aenter__()
        return self

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        async with self._named("could not tell its tools"):
            return await super().get_tools(ctx)
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def _named(self, what: str) -> AsyncGenerator[None]:
        """:raises ToolsetFailed: if it takes too long, or fails"""
        name = self.wrapped.id or self.wrapped.label
        seconds = self.limit.total_seconds()
        # In this task: some toolsets have to be closed by the task that opened them.
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                yield
        except ClewError:
            raise
        except TimeoutError as error:
            late = f"within {seconds:g} s (tools.ready_timeout)" if deadline.expired() else error
            raise ToolsetFailed(f"the toolset {name} {what}: {_late(late)}") from error
        except Exception as error:
            raise ToolsetFailed(f"the toolset {name} {what}: {_said(error)}") from error


def _late(said: object) -> str:
    return f"it did not come {said}" if isinstance(said, str) else _said(said)


def _said(error: object) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


@dataclass
class RequestClock(AbstractCapability[Any]):
    """Tells, within one request, the time of the provider from that of the agent's own code."""

    limits: CodeLimits
    #: Seconds that a provider may be silent.
    silence: float = 0.0
    _deadline: asyncio.Timeout | None = None
    _asked: bool = False
    _place: str = field(default="before the model was asked")

    def get_wrapper_model(self, model: Model) -> Model:
        return _Clocked(model, self)

    @asynccontextmanager
    async def request(self, silence: float) -> AsyncGenerator[asyncio.Timeout]:
        """
        Bound one request: its preparation, then the provider's silence, then what comes after.

        :raises AgentCodeTooSlow: if it was not the provider that took too long
        """
        self.silence, self._asked, self._place = silence, False, "before the model was asked"
        self._deadline = deadline = asyncio.timeout(self.limits.preparation)
        try:
            async with deadline:
                yield deadline
        except TimeoutError as error:
            if self._asked or not deadline.expired():
                raise
            raise AgentCodeTooSlow(self._place, self.limits.agent.total_seconds()) from error
        finally:
            self._deadline = None

    @asynccontextmanager
    async def code(self, place: str, seconds: float) -> AsyncGenerator[None]:
        """
        Bound what the agent's own code does outside of requests.

        :raises AgentCodeTooSlow: if it takes too long
        """
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                yield
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise AgentCodeTooSlow(place, seconds) from error

    def asks(self) -> None:
        """Say that the provider is asked from now on."""
        self._asked = True
        self._wait(self.silence)

    def answered(self) -> None:
        """Say that the provider is done, and the agent's own code goes on."""
        self._asked, self._place = False, "after the model had answered"
        self._wait(self.limits.agent.total_seconds())

    def _wait(self, seconds: float) -> None:
        if self._deadline is not None and not self._deadline.expired():
            self._deadline.reschedule(asyncio.get_running_loop().time() + seconds)


class _Clocked(WrapperModel):
    """A model whose requests are told to the clock."""

    def __init__(self, wrapped: Model, clock: RequestClock) -> None:
        super().__init__(wrapped)
        self._clock = clock

    async def request(self, *arguments: Any, **more: Any) -> ModelResponse:
        self._clock.asks()
        response = await super().request(*arguments, **more)
        self._clock.answered()
        return response

    @asynccontextmanager
    async def request_stream(
        self, *arguments: Any, **more: Any
    ) -> AsyncGenerator[StreamedResponse]:
        self._clock.asks()
        async with super().request_stream(*arguments, **more) as stream:
            yield stream
        self._clock.answered()
