"""The check of ``clew doctor`` that the collector answers."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import httpx2

from clew.config.secret import redact_password
from clew.core.doctor_finding import DoctorFinding, ok, warn
from clew.features.telemetry.collector import read_headers, signal_url

if TYPE_CHECKING:
    from clew.features.telemetry.settings import TelemetrySettings

_NAME = "telemetry"
_SECONDS = 5.0


async def check_collector(settings: TelemetrySettings) -> DoctorFinding:
    """Send an empty batch of traces to the collector."""
    shown = redact_password(settings.otlp_endpoint or "")
    if find_spec("opentelemetry.exporter") is None:
        return warn(
            _NAME, "OpenTelemetry is not installed", fix="pip install 'clew-gateway[telemetry]'"
        )
    headers = {**read_headers(settings), "Content-Type": "application/x-protobuf"}
    try:
        async with httpx2.AsyncClient(timeout=_SECONDS) as http:
            answer = await http.post(signal_url(settings, "traces"), content=b"", headers=headers)
    except httpx2.HTTPError as error:
        return warn(
            _NAME,
            f"{shown} cannot be reached: {error or type(error).__name__}",
            fix="start the collector, or correct telemetry.otlp_endpoint; turns go on without it",
        )
    if answer.is_success:
        return ok(_NAME, f"traces and metrics are sent to {shown}")
    return warn(
        _NAME,
        f"{shown} answers with {answer.status_code}",
        fix="correct telemetry.otlp_endpoint or telemetry.headers",
    )
