"""The address of a collector and the headers for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.features.telemetry.settings import TelemetrySettings


def signal_url(settings: TelemetrySettings, signal: str) -> str:
    """Return the address for ``traces`` or ``metrics``."""
    return f"{(settings.otlp_endpoint or '').rstrip('/')}/v1/{signal}"


def read_headers(settings: TelemetrySettings) -> dict[str, str]:
    """Return the headers of each request, with their secrets."""
    return {name: secret.reveal() for name, secret in (settings.headers or {}).items()}
