"""What the loop needs from whoever keeps the turn: implemented in the engine, over the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse

    from clew.core.effect import Effect
    from clew.core.events import DeltaKind


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopContext:
    """What the stored context asks for next."""

    #: Ends in a request that is to be sent, or in a response whose calls are to be run.
    messages: Sequence[ModelMessage]
    #: Rendered when the session opened; ``None`` for none.
    instructions: str | None
    #: Model requests that this turn has had.
    steps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRequest:
    """A tool call that the model asks for."""

    call_id: str
    tool: str
    args: dict[str, object]
    effect: Effect
    needs_approval: bool


class TurnLog(Protocol):
    """The turn's part of the log. Each method returns once its commit is durable."""

    async def context(self) -> LoopContext:
        """The context as it is stored now."""
        ...

    async def store_response(self, response: ModelResponse) -> None:
        """Append a response that is not the last one, and count the step."""
        ...

    async def store_request(self, request: ModelRequest) -> None:
        """Append what will be sent next: results of tools, or what the model did wrong."""
        ...

    async def steered(self) -> Sequence[ModelRequest]:
        """Let waiting messages join the turn here, and return them; they are appended."""
        ...

    async def store_attempt(self, text: str) -> None:
        """Append, outside the context, that a request failed and is made again."""
        ...

    def say(self, kind: DeltaKind, text: str) -> None:
        """Show a piece of the response that is being made."""
        ...

    def retract(self, reason: str) -> None:
        """The pieces shown since the last entry are void."""
        ...


class Journal(Protocol):
    """Runs tool calls so that none with an effect runs twice."""

    async def call(
        self, request: ToolRequest, execute: Callable[[bool], Awaitable[object]]
    ) -> object:
        """
        Give the stored result of a call, or run it (``execute(approved)``) and store its result.

        What is returned is the same on the first run and after a restart. A call that waits for a
        person returns a placeholder, and ``suspended`` becomes true.
        """
        ...

    @property
    def suspended(self) -> bool:
        """Whether the batch cannot be completed now: the turn waits."""
        ...
