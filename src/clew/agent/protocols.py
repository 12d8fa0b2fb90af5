"""Protocols that the loop needs; implemented in the engine, over the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from contextlib import AbstractContextManager

    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
    from pydantic_ai.models import Model

    from clew.core.effect import Effect
    from clew.core.events import DeltaKind
    from clew.core.journal import CallStatus, FullToolResult
    from clew.core.session_prefix import SessionPrefix
    from clew.core.tool_facts import FactsFunction


class LoopContext(Record):
    """Stored context, which determines the next action."""

    #: Ends in a request to send, or in a response whose calls are to be run.
    messages: Sequence[ModelMessage]
    #: Stored with the session; ``None`` before its first request.
    prefix: SessionPrefix | None
    #: Model requests made in this turn.
    steps: int
    #: Corrections in a row in this turn: by tool, and for the answer as ``OUTPUT``.
    retries: Mapping[str, int] = field(default_factory=dict[str, int])
    #: Names of the tools to which the agent is held; ``None`` for all.
    tools: Collection[str] | None = None


class RequestInfo(Record):
    """Model and mode of a request; together with the context before it, the request."""

    #: As in settings: ``PROVIDER:MODEL``.
    model: str
    stream: bool


class ToolRequest(Record):
    """Tool call that the model requests."""

    call_id: str
    tool: str
    #: The arguments as JSON.
    args: str
    effect: Effect
    needs_approval: bool
    #: Ids of the calls inside of which it is made, from the outside in.
    enclosing: tuple[str, ...] = ()
    #: As the model wrote ``args``, if a plugin has changed them.
    requested: str | None = None
    #: Makes the facts about the call; ``None`` for a tool that declares none.
    facts: FactsFunction | None = None
    #: The tool's results hold text that strangers may have written.
    untrusted: bool = False
    #: The tool waits for other turns.
    awaits_turns: bool = False


class ToolResult(Record):
    """Outcome of a call as it is stored."""

    status: CallStatus
    format: str
    #: JSON in ``format``.
    result: str
    #: The full result if it was too long for the context, stored beside it.
    whole: FullToolResult | None = None


class NeedsApproval(Exception):
    """Call that needs approval; raised by the tool before it had any effect."""


class CallSuspended(BaseException):
    """
    Signal that a call inside another one waits for approval; it ends the outer call.

    No ``Exception``: the outer tool must not catch it and go on without a result.
    """


@dataclass(kw_only=True, slots=True)
class ModelWait:
    """A wait for a model; the loop adds what it received."""

    response: ModelResponse | None = None


class TurnLog(Protocol):
    """The turn's part of the log. Each method returns once its commit is durable."""

    async def read_context(self) -> LoopContext:
        """Return the context as it is stored now."""
        ...

    def waiting_for_model(self, asked: RequestInfo) -> AbstractContextManager[ModelWait]:
        """Mark the block as a wait for a model's answer to a request."""
        ...

    def record_request(self, asked: RequestInfo) -> None:
        """Record that a request was sent; whatever is stored next results from it."""
        ...

    async def store_prefix(self, prefix: SessionPrefix) -> None:
        """Store the instructions and tools of the session, before its first request."""
        ...

    async def store_response(self, response: ModelResponse) -> None:
        """Append a response that is not the last, and count the step."""
        ...

    async def store_request(self, request: ModelRequest, retries: Mapping[str, int]) -> None:
        """
        Append the next request: tool results or corrections of the model.

        ``retries``, as in the context, include this request; a later run continues from
        them.
        """
        ...

    async def take_steering_messages(self) -> Sequence[ModelMessage]:
        """Append the waiting messages to the turn and return them."""
        ...

    async def compact_if_needed(self, model: Model) -> LoopContext | None:
        """Compact the context if a request to the model needs it; ``None`` if unchanged."""
        ...

    async def store_usage(self, response: ModelResponse) -> None:
        """Record the cost of a faulty response that is not stored."""
        ...

    async def store_attempt(self, text: str) -> None:
        """Append, outside the context, that a request failed and is repeated."""
        ...

    def emit_delta(self, kind: DeltaKind, text: str) -> None:
        """Emit a piece of the current response."""
        ...

    def retract_deltas(self, reason: str) -> None:
        """Retract the pieces emitted since the last entry."""
        ...


#: Runs the tool with these arguments (JSON) and whether the call was approved.
ExecuteTool = Callable[[str, bool], Awaitable[ToolResult]]


class Journal(Protocol):
    """Runner of tool calls that never runs one with an effect twice."""

    async def execute_call(self, request: ToolRequest, execute: ExecuteTool) -> ToolResult | None:
        """
        Return the stored result of a call; otherwise run it and store its result.

        Returns ``None`` for a call that waits for approval: then ``is_suspended`` is true.

        :raises CallSuspended: if a call inside another one waits for approval
        """
        ...

    async def read_result(self, call_id: str) -> str | None:
        """Return the full result of a call of this conversation; ``None`` if there is none."""
        ...

    @property
    def is_suspended(self) -> bool:
        """Return whether the batch cannot be completed now, so that the turn waits."""
        ...
