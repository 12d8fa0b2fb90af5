"""Telemetry: traces and metrics of turns for a collector of OpenTelemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.features.telemetry.feature import Telemetry
from clew.features.telemetry.settings import TelemetrySettings

if TYPE_CHECKING:
    from clew.plugin import Registry


def register(registry: Registry) -> None:
    """Register the feature; without an address nothing is sent, and nothing is imported."""
    telemetry = Telemetry(registry.add_settings(TelemetrySettings))
    registry.add_tracer("opentelemetry", telemetry.make_tracer)
    registry.add_service("telemetry queue", telemetry.watch_queue)
    registry.add_doctor_check("telemetry", telemetry.check_collector)
