"""Metrics of this process: its finished turns and current state."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from clew.record import Record
from clew.store.transactions.gauges import Gauges, read_gauges

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.core.ids import OwnerId
    from clew.core.turn import TurnOutcome
    from clew.engine.event_bus import EventBus
    from clew.store.contract import Store


class MetricsSnapshot(Record):
    """The metrics at one moment."""

    #: Turns that ended here, by outcome.
    turns: Mapping[TurnOutcome, int]
    gauges: Gauges
    #: Seconds for reading the gauges, and for a check of reading and writing.
    read_seconds: float
    check_seconds: float


class EngineMetrics:
    """The metrics of one process."""

    def __init__(self, store: Store, hub: EventBus, owner: OwnerId) -> None:
        self._store, self._event_bus, self._owner = store, hub, owner

    async def take_snapshot(self) -> MetricsSnapshot:
        """
        Return the current metrics.

        :raises StoreError: if the store cannot be read and written now
        """
        begun = time.perf_counter()
        found = await self._store.read(read_gauges, me=self._owner)
        read = time.perf_counter()
        await self._store.check_available()
        return MetricsSnapshot(
            turns=dict(self._event_bus.closed_turns),
            gauges=found,
            read_seconds=read - begun,
            check_seconds=time.perf_counter() - read,
        )
