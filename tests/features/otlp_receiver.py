"""A collector of OpenTelemetry on loopback, which decodes what it is sent."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, kw_only=True)
class ReceivedSpan:
    name: str
    trace: str
    id: str
    parent: str
    attributes: Mapping[str, object]
    failed: bool


@dataclass
class Collector:
    """What was received so far."""

    url: str = ""
    spans: list[ReceivedSpan] = field(default_factory=list[ReceivedSpan])
    #: The names of the attributes of each metric.
    metrics: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    headers: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    #: Answers nothing while it is not set.
    answers: threading.Event = field(default_factory=threading.Event)

    def named(self, begin: str) -> Sequence[ReceivedSpan]:
        return [span for span in self.spans if span.name.startswith(begin)]

    def take(self, path: str, body: bytes, headers: Mapping[str, str]) -> None:
        self.headers.append(headers)
        if path == "/v1/traces":
            self._take_spans(ExportTraceServiceRequest.FromString(body))
        else:
            assert path == "/v1/metrics"
            self._take_metrics(ExportMetricsServiceRequest.FromString(body))

    def _take_spans(self, told: Any) -> None:
        for resource in told.resource_spans:
            for scope in resource.scope_spans:
                self.spans += [
                    ReceivedSpan(
                        name=span.name,
                        trace=span.trace_id.hex(),
                        id=span.span_id.hex(),
                        parent=span.parent_span_id.hex(),
                        attributes={one.key: _value(one.value) for one in span.attributes},
                        failed=span.status.code == 2,
                    )
                    for span in scope.spans
                ]

    def _take_metrics(self, told: Any) -> None:
        for resource in told.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    points = getattr(metric, metric.WhichOneof("data")).data_points
                    names = {one.key for point in points for one in point.attributes}
                    self.metrics.setdefault(metric.name, set()).update(names)


def _value(told: Any) -> object:
    kind = told.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in told.array_value.values]
    return getattr(told, kind)


@contextmanager
def collecting(*, answers: bool = True) -> Generator[Collector]:
    """A collector that runs during the block; one that does not answer accepts connections."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.answers.wait()
            headers = {name.lower(): value for name, value in self.headers.items()}
            collector.take(self.path, body, headers)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        collector.url = f"http://127.0.0.1:{server.server_port}"
        if answers:
            collector.answers.set()
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            collector.answers.set()
            server.shutdown()
            thread.join()
