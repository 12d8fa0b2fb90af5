"""Measures: what this process has done, and how it stands now."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.store.transactions.gauges import Gauges, read_gauges

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.core.ids import OwnerId
    from clew.core.turn import TurnOutcome
    from clew.engine.hub import Hub
    from clew.store.contract import Store


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """One look at it."""

    #: Turns that ended here, by outcome.
    turns: Mapping[TurnOutcome, int]
    gauges: Gauges
    #: Seconds that reading the gauges took, and a check of reading and writing.
    read_seconds: float
    check_seconds: float


class Measures:
    """Takes the numbers of one process."""

    def __init__(self, store: Store, hub: Hub, owner: OwnerId) -> None:
        self._store, self._hub, self._owner = store, hub, owner

    async def take(self) -> Measured:
        """:raises StoreError: if the store cannot be read and written now"""
        begun = time.perf_counter()
        found = await self._store.read(read_gauges, me=self._owner)
        read = time.perf_counter()
        await self._store.check_available()
        return Measured(
            turns=dict(self._hub.closed),
            gauges=found,
            read_seconds=read - begun,
            check_seconds=time.perf_counter() - read,
        )
