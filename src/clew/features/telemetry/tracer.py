"""Traces and metrics of turns with OpenTelemetry's SDK; imported only where they are on."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from clew.features.telemetry import attributes
from clew.features.telemetry.instruments import Instruments
from clew.features.telemetry.providers import open_providers

if TYPE_CHECKING:
    from collections.abc import Generator

    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from clew.core.ids import TurnId
    from clew.core.traceparent import TraceParent
    from clew.features.telemetry.providers import Providers
    from clew.features.telemetry.settings import TelemetrySettings
    from clew.plugin.tracing import TracedCall, TracedRequest, TracedRun


def open_tracer(settings: TelemetrySettings) -> OtelTracer:
    """Return a tracer that sends to the collector of the settings."""
    return OtelTracer(open_providers(settings), content=settings.content)


class OtelTracer:
    """A tracer of turns: a span for each run, its steps, its requests and its tool calls."""

    def __init__(self, providers: Providers, *, content: bool) -> None:
        self._providers, self.content = providers, content
        self.tracer = providers.traces.get_tracer("clew")
        self.instruments = Instruments(providers.metrics.get_meter("clew"))

    def name_trace(self, turn: TurnId, parent: TraceParent | None) -> str:
        """Return the id of the caller's trace, else a new one."""
        return self._providers.ids.new_trace_id() if parent is None else parent.trace_id

    @contextmanager
    def trace_run(self, run: TracedRun) -> Generator[OtelRun]:
        began = time.monotonic()
        span = self._start_run(run)
        traced = OtelRun(self, span)
        try:
            yield traced
        finally:
            traced.end_step()
            span.set_attributes(attributes.describe_end(run))
            if run.ended is not None and run.ended.error_code is not None:
                span.set_status(StatusCode.ERROR, run.ended.error_code)
            span.end()
            self.instruments.record_run(run, time.monotonic() - began)

    def _start_run(self, run: TracedRun) -> Span:
        context, turn = trace.set_span_in_context(trace.INVALID_SPAN), run.turn
        if run.parent is not None and run.parent.trace_id == turn.trace_id:
            context = _context_of(run.parent)
        elif turn.trace_id is not None:
            # A root of its own in the trace of the earlier runs.
            self._providers.ids.use_trace_id(turn.trace_id)
        return self.tracer.start_span(
            f"{attributes.AGENT_SPAN} {attributes.agent_name(run)}",
            context=context,
            kind=SpanKind.INTERNAL,
            attributes=attributes.describe_run(run),
        )

    def record_queue(self, *, waiting: int, unfinished: int) -> None:
        """Record how much work is open."""
        self.instruments.record_queue(waiting=waiting, unfinished=unfinished)

    def close(self) -> None:
        """Send what is left, and end."""
        self._providers.close()


class OtelRun:
    """The span of one run of a turn, and that of its step."""

    def __init__(self, owner: OtelTracer, span: Span) -> None:
        self._owner, self._span = owner, span
        self._step: Span | None = None
        self._number = 0

    @contextmanager
    def trace_request(self, request: TracedRequest) -> Generator[None]:
        began = time.monotonic()
        _, model = attributes.split_model(request.model)
        span = self._owner.tracer.start_span(
            f"{attributes.CHAT_SPAN} {model}",
            context=trace.set_span_in_context(self._begin_step(request.step)),
            kind=SpanKind.CLIENT,
            attributes=attributes.describe_request(request),
        )
        error: str | None = None
        try:
            yield
        except BaseException as raised:
            error = type(raised).__qualname__
            _mark_failed(span, error)
            raise
        finally:
            content = self._owner.content
            span.set_attributes(attributes.describe_response(request, content=content))
            span.end()
            self._owner.instruments.record_request(request, time.monotonic() - began, error=error)

    @contextmanager
    def trace_call(self, call: TracedCall) -> Generator[None]:
        began, content = time.monotonic(), self._owner.content
        span = self._owner.tracer.start_span(
            f"{attributes.TOOL_SPAN} {call.tool}",
            context=trace.set_span_in_context(self._step or self._span),
            kind=SpanKind.INTERNAL,
            attributes=attributes.describe_call(call, content=content),
        )
        try:
            # What the tool itself traces is below its span.
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                yield
        except Exception as raised:
            _mark_failed(span, type(raised).__qualname__)
            raise
        finally:
            span.set_attributes(attributes.describe_result(call, content=content))
            span.end()
            self._owner.instruments.record_call(call, time.monotonic() - began)

    def _begin_step(self, number: int) -> Span:
        if self._step is None or number != self._number:
            self.end_step()
            self._number = number
            self._step = self._owner.tracer.start_span(
                f"step {number}",
                context=trace.set_span_in_context(self._span),
                attributes={"clew.step": number},
            )
        return self._step

    def end_step(self) -> None:
        """End the span of the step, if one is open."""
        if self._step is not None:
            self._step.end()
            self._step = None


def _mark_failed(span: Span, error: str) -> None:
    span.set_attribute("error.type", error)
    span.set_status(StatusCode.ERROR, error)


def _context_of(parent: TraceParent) -> Context:
    """Return the context of a caller's span."""
    flags = trace.TraceFlags.SAMPLED if parent.is_sampled else trace.TraceFlags.DEFAULT
    caller = trace.SpanContext(
        trace_id=int(parent.trace_id, 16),
        span_id=int(parent.span_id, 16),
        is_remote=True,
        trace_flags=trace.TraceFlags(flags),
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(caller))
