"""The settings of telemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.config.builtin_types import FLAG, SECRETS, URL
from clew.config.fields import setting
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.config.secret import Secret


class TelemetrySettings(Record):
    """Traces and metrics for a collector of OpenTelemetry; they need the extra `telemetry`."""

    otlp_endpoint: str | None = setting(
        URL,
        None,
        "The address of a collector that speaks OTLP over HTTP, such as "
        "`http://127.0.0.1:4318`: traces go to `/v1/traces` below it, metrics to `/v1/metrics`. "
        "Without one nothing is sent.",
    )
    headers: Mapping[str, Secret] | None = setting(
        SECRETS, None, "HTTP headers for the collector: text, or a reference as every secret."
    )
    content: bool = setting(
        FLAG,
        False,
        "Send the texts of answers and the arguments and results of tool calls with the traces, "
        "without the secrets that Clew knows.",
    )
