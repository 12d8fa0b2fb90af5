"""Pace of an import beside other processes on the same store."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from clew.store.transactions import owners

if TYPE_CHECKING:
    from clew.core.ids import OwnerId
    from clew.store.contract import Store

#: Seconds of rest for each second of work, while others have the store open.
_REST: Final = 1.0
#: Seconds between two looks at who has it open; of work between two rests.
_LOOK_EVERY, _REST_EVERY = 2.0, 0.005
#: Seconds of the longest rest, as after the process was stopped for a while.
_LONGEST_REST: Final = 1.0


class ImportPace:
    """Rests that leave the store and the processor to the turns of others."""

    def __init__(self, store: Store, me: OwnerId) -> None:
        self._store, self._me = store, me
        self._working_since = time.monotonic()
        self._looked_at = float("-inf")
        self._is_shared = False

    async def rest_if_shared(self) -> None:
        """Rest in proportion to the work since the last rest, if others have the store open."""
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_EVERY:
            self._looked_at = now
            living = await self._store.read(owners.list_living_owners)
            self._is_shared = any(owner.id != self._me for owner in living)
        worked = now - self._working_since
        if self._is_shared and worked < _REST_EVERY:
            return
        if self._is_shared:
            await asyncio.sleep(min(worked * _REST, _LONGEST_REST))
        self._working_since = time.monotonic()
