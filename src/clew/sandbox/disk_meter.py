"""The room that is left in a workspace, for files that the gateway writes."""

from __future__ import annotations

import asyncio
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from clew.core.byte_size import format_size
from clew.sandbox.errors import FileRefused
from clew.sandbox.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

#: Seconds between two looks at the disk, and their least multiple of the time that one takes.
_PERIOD: Final = 0.5
_SHARE: Final = 20


class DiskMeter:
    """The size of a workspace, measured as rarely as its size demands."""

    def __init__(self, root: Path, limit: int) -> None:
        self._workspace, self._limit = Workspace(root), limit
        self._not_before = 0.0
        #: Bytes of the workspace, with what writes have added since the last look.
        self._total = 0

    async def refuse_growth(self, size: int) -> str | None:
        """Return why files may not grow by ``size`` bytes; ``None`` if they may, and will."""
        if size <= 0:
            return None
        doubt = ""
        # A measure that is not the newest may allow, but not refuse.
        if time.monotonic() >= self._not_before or self._total + size > self._limit:
            doubt = await self._measure()
        if self._total + size > self._limit:
            return (
                f"the workspace would hold more than {format_size(self._limit)}{doubt}: remove "
                "files that are not needed"
            )
        self._total += size
        return None

    async def _measure(self) -> str:
        """Measure the workspace; return a clause if that is not possible."""
        loop, begun = asyncio.get_running_loop(), time.monotonic()
        self._total, doubt = await loop.run_in_executor(_threads(), self._measure_now)
        now = time.monotonic()
        self._not_before = now + max(_PERIOD, _SHARE * (now - begun))
        return doubt

    def _measure_now(self) -> tuple[int, str]:
        try:
            return self._workspace.measure_usage(at_most=sys.maxsize), ""
        except FileRefused as error:
            return self._limit + 1, f", or cannot be measured ({error})"


@lru_cache(maxsize=256)
def get_disk_meter(root: Path, limit: int) -> DiskMeter:
    """Return the meter of a workspace: it remembers its last look."""
    return DiskMeter(root, limit)


@cache
def _threads() -> ThreadPoolExecutor:
    """Return threads for looks, which must not wait behind anything else."""
    return ThreadPoolExecutor(max_workers=2, thread_name_prefix="clew-sandbox-disk")
