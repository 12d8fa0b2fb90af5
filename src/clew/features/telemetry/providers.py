"""OpenTelemetry's providers: a bounded queue, and threads of their own that send what is in it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import structlog
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from clew.agent.known_secrets import redact_secrets
from clew.distribution import VERSION
from clew.features.telemetry.collector import read_headers, signal_url
from clew.record import Record

if TYPE_CHECKING:
    from clew.features.telemetry.settings import TelemetrySettings

log = structlog.get_logger(__name__)

#: Spans that may wait; further ones take the place of the oldest.
_MAX_QUEUED = 2048
#: Milliseconds between two batches of spans, and of metrics.
_SPANS_EVERY, _METRICS_EVERY = 2_000, 30_000
#: Seconds for one batch, with its repetitions.
_SEND_TIMEOUT = 10
#: Milliseconds for the last batch.
_CLOSE_TIMEOUT = 1_500


class TraceIds(RandomIdGenerator):
    """Ids of spans and traces; the next root can be given the trace of earlier ones."""

    def __init__(self) -> None:
        self._next: int | None = None

    def new_trace_id(self) -> str:
        """Return the id of a new trace, as hex digits."""
        return f"{super().generate_trace_id():032x}"

    def use_trace_id(self, trace_id: str) -> None:
        """Give the next span that has no parent this trace."""
        self._next = int(trace_id, 16)

    def generate_trace_id(self) -> int:
        found, self._next = self._next, None
        return super().generate_trace_id() if found is None else found


class Providers(Record):
    """The providers of one process, which are not those of other libraries in it."""

    traces: TracerProvider
    metrics: MeterProvider
    ids: TraceIds

    def close(self) -> None:
        """Send what is left, and end."""
        self.traces.force_flush(_CLOSE_TIMEOUT)
        self.traces.shutdown()
        self.metrics.shutdown(_CLOSE_TIMEOUT)


def open_providers(settings: TelemetrySettings) -> Providers:
    """Return providers that send to the collector of the settings."""
    _log_once()
    headers, ids = read_headers(settings), TraceIds()
    resource = Resource.create({"service.name": "clew", "service.version": VERSION})
    traces = TracerProvider(resource=resource, id_generator=ids, shutdown_on_exit=False)
    traces.add_span_processor(
        BatchSpanProcessor(
            OTLPSpanExporter(
                endpoint=signal_url(settings, "traces"), headers=headers, timeout=_SEND_TIMEOUT
            ),
            max_queue_size=_MAX_QUEUED,
            schedule_delay_millis=_SPANS_EVERY,
        )
    )
    reader = PeriodicExportingMetricReader(
        OTLPMetricExporter(
            endpoint=signal_url(settings, "metrics"), headers=headers, timeout=_SEND_TIMEOUT
        ),
        export_interval_millis=_METRICS_EVERY,
    )
    metrics = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
    return Providers(traces=traces, metrics=metrics, ids=ids)


def _log_once() -> None:
    """Have the library's own messages make one line: a collector may be away for days."""
    library = logging.getLogger("opentelemetry")
    if not any(isinstance(one, _FirstLine) for one in library.handlers):
        library.addHandler(_FirstLine(logging.WARNING))
        library.propagate = False


class _FirstLine(logging.Handler):
    """A handler that logs the first warning of the library, and no further one."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self._is_logged = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._is_logged:
            self._is_logged = True
            log.warning("telemetry_not_sent", error=redact_secrets(record.getMessage()))
