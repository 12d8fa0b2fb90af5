"""Tracers: code of a feature that sees when turns, requests and tool calls begin and end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from clew.core.effect import Effect
    from clew.core.ids import TurnId
    from clew.core.journal import CallStatus
    from clew.core.traceparent import TraceParent
    from clew.core.turn import Turn
    from clew.plugin.turn_context import TurnContext


@dataclass(kw_only=True, slots=True)
class TracedRun:
    """One owner's run of a turn; ``ended`` is filled in by its end."""

    turn: Turn
    context: TurnContext
    #: The turn began before: in a process that is gone, or before it waited for an approval.
    is_resumed: bool
    #: The span of the program whose message began the turn.
    parent: TraceParent | None
    #: The turn as the run leaves it; ``None`` if another owner goes on with it.
    ended: Turn | None = None


@dataclass(kw_only=True, slots=True)
class TracedRequest:
    """A request to a model; all but the first fields are filled in by its end."""

    #: As in settings: ``PROVIDER:MODEL``.
    model: str
    stream: bool
    #: The step of the turn, from 1.
    step: int
    response_id: str | None = None
    response_model: str | None = None
    finish_reason: str | None = None
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    text: str = ""


@dataclass(kw_only=True, slots=True)
class TracedCall:
    """A tool call that runs; ``status`` and ``result`` are filled in by its end."""

    tool: str
    call_id: str
    #: JSON.
    args: str
    effect: Effect
    status: CallStatus | None = None
    #: JSON, as the model is sent it.
    result: str = ""


class RunTrace(Protocol):
    """The trace of one run of a turn."""

    def trace_request(self, request: TracedRequest) -> AbstractContextManager[object]:
        """Return a block that lasts as long as the request; an error leaves it."""
        ...

    def trace_call(self, call: TracedCall) -> AbstractContextManager[object]:
        """Return a block that lasts as long as the call."""
        ...


class Tracer(Protocol):
    """
    A tracer of turns.

    Its methods run on the turn's path: they must neither block nor wait. One that raises is
    logged, and changes nothing in the turn.
    """

    def name_trace(self, turn: TurnId, parent: TraceParent | None) -> str | None:
        """
        Return the id of a new turn's trace, 32 hex digits; it is stored with the turn.

        ``None`` leaves that to the next tracer.
        """
        ...

    def trace_run(self, run: TracedRun) -> AbstractContextManager[RunTrace]:
        """Return a block that lasts as long as the run of a turn."""
        ...

    def close(self) -> None:
        """Send what is left and end; called once, in a thread of its own with a time limit."""
        ...
