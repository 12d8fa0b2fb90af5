"""Tracing of turns by the tracers of features, which cannot disturb a turn."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from clew.agent.messages import extract_text
from clew.core.traceparent import TRACEPARENT, incoming_traceparent, parse_traceparent
from clew.engine.log_throttle import LogThrottle
from clew.plugin.declarations import TracerSource
from clew.plugin.registry import Features
from clew.plugin.tracing import TracedCall, TracedRequest, TracedRun

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from contextlib import AbstractContextManager

    from clew.agent.messages import ModelResponse
    from clew.agent.protocols import ModelWait, RequestInfo, ToolRequest, ToolResult
    from clew.core.ids import TurnId
    from clew.core.inbox import InboxItem
    from clew.core.turn import Turn
    from clew.plugin.tracing import RunTrace, Tracer
    from clew.plugin.turn_context import TurnContext
    from clew.store.transactions.turns import StartedWork

T = TypeVar("T")

log = structlog.get_logger(__name__)

#: Seconds in which the tracers may send what is left when the process stops.
_CLOSE_TIMEOUT = 2.0


class TurnTracing:
    """The tracers of all features; without one, tracing costs a turn nothing."""

    def __init__(self, features: Features | None = None) -> None:
        sources = (features or Features()).values(TracerSource)
        made = (source.make() for source in sources)
        self._tracers = [_Guarded(tracer) for tracer in made if tracer is not None]

    @property
    def is_active(self) -> bool:
        """Return whether turns are traced."""
        return bool(self._tracers)

    def name_trace(self, turn: TurnId, items: Sequence[InboxItem]) -> str | None:
        """Return the id of the trace of a turn that begins with these inputs."""
        parent = parse_traceparent(read_traceparent(items[0].payload)) if items else None
        for one in self._tracers:
            found = one.run(lambda one=one: one.tracer.name_trace(turn, parent))
            if found is not None:
                return found
        return None

    def trace_turn(self, started: StartedWork, context: TurnContext) -> TracedTurn:
        """Return the trace of a turn's run, which begins with ``running``."""
        assert started.turn is not None
        first = started.payloads[0] if started.payloads else "{}"
        run = TracedRun(
            turn=started.turn,
            context=context,
            is_resumed=started.resumed,
            parent=parse_traceparent(read_traceparent(first)),
        )
        return TracedTurn(self._tracers, run)

    async def close(self) -> None:
        """Let the tracers send what is left, within a time limit."""
        if not self._tracers:
            return
        done, loop = asyncio.Event(), asyncio.get_running_loop()

        def close() -> None:
            for one in self._tracers:
                one.run(one.tracer.close)
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(done.set)

        # A daemon: a collector that does not answer must not keep the process.
        threading.Thread(target=close, name="tracers", daemon=True).start()
        with suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), _CLOSE_TIMEOUT)


class TracedTurn:
    """The trace of one run of a turn, as the parts of the run see it."""

    def __init__(self, tracers: Sequence[_Guarded], run: TracedRun) -> None:
        self._tracers, self._run = tracers, run
        self._traces: list[tuple[_Guarded, RunTrace]] = []

    @contextmanager
    def running(self) -> Generator[None]:
        """Trace the block as the run."""
        with ExitStack() as stack:
            for one in self._tracers:
                trace = one.enter(stack, lambda one=one: one.tracer.trace_run(self._run))
                if trace is not None:
                    self._traces.append((one, trace))
            yield

    def record_end(self, turn: Turn) -> None:
        """Record the state in which the run leaves its turn."""
        self._run.ended = turn

    @contextmanager
    def request(self, asked: RequestInfo, step: int, wait: ModelWait) -> Generator[None]:
        """Trace the block as a request, whose answer it adds to ``wait``."""
        if not self._traces:
            yield
            return
        told = TracedRequest(model=asked.model, stream=asked.stream, step=step)
        with ExitStack() as stack:
            for one, trace in self._traces:
                one.enter(stack, lambda trace=trace: trace.trace_request(told))
            try:
                yield
            finally:
                if wait.response is not None:
                    _add_response(told, wait.response)

    @contextmanager
    def call(self, request: ToolRequest) -> Generator[Callable[[ToolResult], None]]:
        """Trace the block as a tool call, whose result it passes on."""
        told = TracedCall(
            tool=request.tool, call_id=request.call_id, args=request.args, effect=request.effect
        )

        def add_result(result: ToolResult) -> None:
            told.status, told.result = result.status, result.result

        with ExitStack() as stack:
            for one, trace in self._traces:
                one.enter(stack, lambda trace=trace: trace.trace_call(told))
            yield add_result


class _Guarded:
    """A tracer whose errors are logged, once a minute, and change nothing."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self._throttle = LogThrottle()

    def run(self, job: Callable[[], T]) -> T | None:
        try:
            return job()
        except Exception as error:  # the code of a feature may raise anything
            if self._throttle.is_due(type(error)):
                log.exception("tracer_failed", tracer=type(self.tracer).__name__)
            return None

    def enter(self, stack: ExitStack, make: Callable[[], AbstractContextManager[T]]) -> T | None:
        """Enter a block of the tracer until the stack is left."""
        block = self.run(make)
        if block is None:
            return None

        def leave(*error: Any) -> None:
            # What it returns is not regarded: a tracer swallows no error of a turn.
            self.run(lambda: block.__exit__(*error))

        entered = self.run(block.__enter__)
        stack.push(leave)
        return entered


def write_traceparent(payload: str) -> str:
    """Return an input's payload with the trace context of the request being handled, if any."""
    parent = incoming_traceparent.get()
    return payload if parent is None else json.dumps({**json.loads(payload), TRACEPARENT: parent})


def read_traceparent(payload: str) -> str | None:
    """Return the ``traceparent`` of the request that sent an input, if it had one."""
    if f'"{TRACEPARENT}"' not in payload:
        return None
    found: object = json.loads(payload).get(TRACEPARENT)
    return found if isinstance(found, str) else None


def _add_response(told: TracedRequest, response: ModelResponse) -> None:
    told.response_id, told.response_model = response.provider_response_id, response.model_name
    told.finish_reason = response.finish_reason
    told.input_tokens = response.usage.input_tokens
    told.cached_tokens = response.usage.cache_read_tokens
    told.output_tokens = response.usage.output_tokens
    told.text = extract_text(response)
