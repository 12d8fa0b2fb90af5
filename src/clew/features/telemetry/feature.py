"""Telemetry as the features' door sees it: nothing is imported unless it is on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.ids import OwnerId
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.doctor_finding import DoctorFinding
    from clew.features.telemetry.settings import TelemetrySettings
    from clew.features.telemetry.tracer import OtelTracer
    from clew.plugin import FeatureContext
    from clew.plugin.settings_tables import SettingsSection

#: Seconds between two looks at the queue.
_PERIOD = 15.0
#: Holds no lease: only the work of all processes is measured.
_NOBODY = OwnerId("own_nobody")


class Telemetry:
    """The telemetry of one process."""

    def __init__(self, section: SettingsSection[TelemetrySettings]) -> None:
        self._section = section
        self._tracer: OtelTracer | None = None

    def make_tracer(self) -> OtelTracer | None:
        """
        Return the tracer; ``None`` unless the settings name a collector.

        :raises SettingsError: if the extra is not installed
        """
        settings = self._section.get()
        if settings.otlp_endpoint is None:
            return None
        try:
            from clew.features.telemetry.tracer import open_tracer  # noqa: PLC0415  (imports OpenTelemetry)
        except ImportError as error:
            raise SettingsError(
                "telemetry.otlp_endpoint needs OpenTelemetry, which is not installed "
                f"({error.name}): pip install 'clew-gateway[telemetry]'"
            ) from error
        self._tracer = open_tracer(settings)
        return self._tracer

    async def watch_queue(self, context: FeatureContext) -> None:
        """Measure from time to time how much work is open."""
        import asyncio  # noqa: PLC0415  (declared by every command, run by few)

        from clew.store.transactions.gauges import read_gauges  # noqa: PLC0415  (as above)

        if self._tracer is None:
            await asyncio.Event().wait()
        while self._tracer is not None:
            found = await context.store.read(read_gauges, me=_NOBODY)
            self._tracer.record_queue(waiting=found.waiting, unfinished=found.unfinished)
            await asyncio.sleep(_PERIOD)

    async def check_collector(self) -> Sequence[DoctorFinding]:
        """Return whether the collector of the settings can be reached."""
        settings = self._section.get()
        if settings.otlp_endpoint is None:
            return ()
        from clew.features.telemetry.collector_check import check_collector  # noqa: PLC0415  (imports the HTTP client)

        return [await check_collector(settings)]
