"""Metrics of turns, requests and tool calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.features.telemetry import attributes

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

    from clew.plugin.tracing import TracedCall, TracedRequest, TracedRun


class Instruments:
    """The instruments of one process, by OpenTelemetry's conventions where there are some."""

    def __init__(self, meter: Meter) -> None:
        self._turns = meter.create_counter("clew.turns", "{turn}", "Runs of turns that ended.")
        self._turn_seconds = meter.create_histogram(
            "clew.turn.duration", "s", "How long runs of turns took."
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Tokens of requests to models."
        )
        self._request_seconds = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "How long requests to models took."
        )
        self._tool_seconds = meter.create_histogram(
            "clew.tool.duration", "s", "How long tool calls took."
        )
        self._waiting = meter.create_gauge(
            "clew.inbox.waiting", "{message}", "Inputs that wait for their turn."
        )
        self._unfinished = meter.create_gauge(
            "clew.turns.unfinished", "{turn}", "Turns without an outcome, in the store."
        )

    def record_run(self, run: TracedRun, seconds: float) -> None:
        told = {
            "clew.turn.outcome": attributes.outcome_of(run),
            "clew.platform": run.context.platform,
        }
        self._turns.add(1, told)
        self._turn_seconds.record(seconds, told)

    def record_request(self, one: TracedRequest, seconds: float, *, error: str | None) -> None:
        provider, model = attributes.split_model(one.model)
        told = {
            "gen_ai.operation.name": attributes.CHAT_SPAN,
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
        }
        failed = {} if error is None else {"error.type": error}
        self._request_seconds.record(seconds, {**told, **failed})
        if one.response_model is not None:
            self._tokens.record(one.input_tokens, {**told, "gen_ai.token.type": "input"})
            self._tokens.record(one.output_tokens, {**told, "gen_ai.token.type": "output"})

    def record_call(self, one: TracedCall, seconds: float) -> None:
        status = "unfinished" if one.status is None else one.status.value
        self._tool_seconds.record(
            seconds, {"gen_ai.tool.name": one.tool, "clew.tool.status": status}
        )

    def record_queue(self, *, waiting: int, unfinished: int) -> None:
        self._waiting.set(waiting)
        self._unfinished.set(unfinished)
