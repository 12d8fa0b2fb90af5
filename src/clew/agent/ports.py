"""What the loop needs from whoever keeps the turn: implemented in the engine, over the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse

    from clew.core.effect import Effect
    from clew.core.events import DeltaKind
    from clew.core.journal import CallStatus, FullToolResult


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopContext:
    """What the stored context asks for next."""

    #: Ends in a request that is to be sent, or in a response whose calls are to be run.
    messages: Sequence[ModelMessage]
    #: Rendered when the session opened; ``None`` for none.
    instructions: str | None
    #: Model requests that this turn has had.
    steps: int
    #: How often in a row the model was told in this turn what is wrong: by tool, and for the
    #: answer as ``OUTPUT``.
    retries: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """How a model was asked; with the context before, that is the request."""

    #: As a setting would name it, ``PROVIDER:MODEL``.
    model: str
    stream: bool
    #: As rendered for this request; ``None`` for none.
    instructions: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRequest:
    """A tool call that the model asks for."""

    call_id: str
    tool: str
    #: The arguments as JSON.
    args: str
    effect: Effect
    needs_approval: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolResult:
    """What came of a call, as it is stored."""

    status: CallStatus
    format: str
    #: JSON in ``format``.
    result: str
    #: What was too long for the context, to be kept beside it.
    whole: FullToolResult | None = None


class NeedsApproval(Exception):
    """Raised by a tool before it had any effect: a person must say yes first."""


class TurnLog(Protocol):
    """The turn's part of the log. Each method returns once its commit is durable."""

    async def context(self) -> LoopContext:
        """The context as it is stored now."""
        ...

    def waiting(self) -> AbstractContextManager[None]:
        """A model is waited for while the block lasts."""
        ...

    def asked(self, asked: Asked) -> None:
        """A request went out; what is stored next came of it."""
        ...

    async def store_response(self, response: ModelResponse, instructions: str | None) -> None:
        """Append a response that is not the last one, and count the step; with its instructions."""
        ...

    async def store_request(self, request: ModelRequest, retries: Mapping[str, int]) -> None:
        """
        Append what will be sent next: results of tools, or what the model did wrong.

        ``retries``, as in the context, are those with this request; a later run goes on from them.
        """
        ...

    async def steered(self) -> Sequence[ModelMessage]:
        """Let waiting messages join the turn here, and return them; they are appended."""
        ...

    async def fit(self) -> LoopContext | None:
        """Make the context smaller if the next request needs it; ``None`` if it stays."""
        ...

    async def store_usage(self, response: ModelResponse) -> None:
        """Record what a response cost that is not stored, because something was wrong with it."""
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


#: Runs the tool with these arguments (JSON); told whether a person approved the call.
Execute = Callable[[str, bool], Awaitable[ToolResult]]


class Journal(Protocol):
    """Runs tool calls so that none with an effect runs twice."""

    async def call(self, request: ToolRequest, execute: Execute) -> ToolResult | None:
        """
        The stored result of a call; else run it and store its result.

        ``None`` for a call that waits for a person: then ``suspended`` becomes true.
        """
        ...

    async def read_result(self, call_id: str) -> str | None:
        """The whole result of a call of this conversation; ``None`` if there is none."""
        ...

    @property
    def suspended(self) -> bool:
        """Whether the batch cannot be completed now: the turn waits."""
        ...
