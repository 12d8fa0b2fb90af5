"""Metrics in the text format of Prometheus."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog
from starlette.responses import PlainTextResponse

from clew.core.health import ChannelState
from clew.core.turn import TurnOutcome
from clew.plugin.declarations import Metric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from starlette.responses import Response

    from clew.api.http_call import HttpCall
    from clew.api.request_stats import RequestStats
    from clew.api.schemas import EmptyInput
    from clew.core.health import ChannelHealth
    from clew.engine.metrics import MetricsSnapshot

log = structlog.get_logger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


async def render_metrics(call: HttpCall, query: EmptyInput, body: EmptyInput) -> Response:
    engine = call.engine
    measured = await engine.metrics.take_snapshot()
    lines = [
        *_request_samples(call.server.stats),
        *_engine_samples(measured),
        *_channel_samples(engine.channels, datetime.now(UTC)),
        *_feature_samples(engine.features.values(Metric)),
    ]
    return PlainTextResponse("\n".join([*lines, ""]), media_type=CONTENT_TYPE)


def _request_samples(served: RequestStats) -> Iterable[str]:
    yield from _family_header("clew_requests_total", "counter", "Requests that were answered.")
    for (method, path, status), count in sorted(served.requests.items()):
        yield _format_sample("clew_requests_total", count, method=method, path=path, status=status)
    yield from _family_header("clew_request_seconds_total", "counter", "Seconds spent on requests.")
    for (method, path), seconds in sorted(served.seconds.items()):
        yield _format_sample("clew_request_seconds_total", seconds, method=method, path=path)
    yield from _family_header(
        "clew_requests_under_way", "gauge", "Requests under way, streams included."
    )
    yield _format_sample("clew_requests_under_way", served.under_way)


def _engine_samples(measured: MetricsSnapshot) -> Iterable[str]:
    yield from _family_header("clew_turns_total", "counter", "Turns that ended in this process.")
    for outcome in TurnOutcome:
        yield _format_sample(
            "clew_turns_total", measured.turns.get(outcome, 0), outcome=outcome.value
        )
    gauges = measured.gauges
    singles: Mapping[str, tuple[str, float]] = {
        "clew_turns_unfinished": ("Turns without an outcome, in the store.", gauges.unfinished),
        "clew_inbox_waiting": ("Inputs that wait for their turn.", gauges.waiting),
        "clew_leases_held": ("Conversations that this process works on.", gauges.leases),
    }
    for name, (says, value) in singles.items():
        yield from _family_header(name, "gauge", says)
        yield _format_sample(name, value)
    yield from _family_header("clew_store_seconds", "gauge", "How long the store took just now.")
    yield _format_sample("clew_store_seconds", measured.read_seconds, operation="read")
    yield _format_sample("clew_store_seconds", measured.check_seconds, operation="check")


def _channel_samples(channels: Mapping[str, ChannelHealth], now: datetime) -> Iterable[str]:
    families: Mapping[str, tuple[str, str, Callable[[ChannelHealth], float]]] = {
        "clew_channel_connected": (
            "gauge",
            "Whether this process has the channel connected.",
            lambda health: health.state is ChannelState.CONNECTED,
        ),
        "clew_deliveries_waiting": (
            "gauge",
            "Messages that wait to be delivered.",
            lambda health: health.deliveries.waiting,
        ),
        "clew_deliveries_oldest_seconds": (
            "gauge",
            "How long the oldest of them has waited.",
            lambda health: _seconds_since(health.deliveries.oldest, now),
        ),
        "clew_deliveries_failing": (
            "gauge",
            "Whether a limit of the channel's settings is exceeded.",
            lambda health: health.deliveries.failing,
        ),
        "clew_delivery_failures_total": (
            "counter",
            "Tries to deliver a message that failed.",
            lambda health: health.deliveries.failed,
        ),
        "clew_deliveries_given_up_total": (
            "counter",
            "Messages that will never be delivered.",
            lambda health: health.deliveries.given_up,
        ),
    }
    for name, (kind, says, value) in families.items():
        yield from _family_header(name, kind, says)
        for channel, health in sorted(channels.items()):
            yield _format_sample(name, value(health), channel=channel)


def _feature_samples(metrics: Iterable[Metric]) -> Iterable[str]:
    for metric in metrics:
        try:
            value = metric.read()
        except Exception as error:  # noqa: BLE001  (the code of a feature may raise anything)
            log.warning("metric_failed", metric=metric.name, error=repr(error))
            continue
        name = f"clew_{metric.name}"
        yield from _family_header(name, metric.kind, metric.doc)
        yield _format_sample(name, value)


def _seconds_since(moment: datetime | None, now: datetime) -> float:
    return 0.0 if moment is None else max(0.0, (now - moment).total_seconds())


def _family_header(name: str, kind: str, says: str) -> tuple[str, str]:
    return f"# HELP {name} {says}", f"# TYPE {name} {kind}"


def _format_sample(name: str, value: float, **labels: str) -> str:
    inside = ",".join(f'{label}="{_escape_label(text)}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {value:.9g}" if inside else f"{name} {value:.9g}"


def _escape_label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
