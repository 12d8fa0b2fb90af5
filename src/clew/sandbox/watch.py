"""Limits that the kernel does not count: of a whole command, and of a workspace."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Final

from clew.core.byte_size import format_size
from clew.sandbox.errors import FileRefused
from clew.sandbox.process_tree import measure_unnamed_files
from clew.sandbox.usage_limits import find_excess
from clew.sandbox.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from clew.sandbox.request import CommandLimits

#: Seconds between two looks at the processes.
_PERIOD: Final = 0.1
#: Seconds between two looks at the disk, and their least multiple of the time that one takes.
_DISK_PERIOD: Final = 0.5
_DISK_SHARE: Final = 20
#: Bytes by which a workspace that is too large may still grow, so that one can tidy up in it.
_SLACK: Final = 16 * 1024 * 1024


async def watch_usage(root: int, limits: CommandLimits, disk: DiskMeter) -> str:
    """Return the reason to stop a command as soon as there is one; else never."""
    # Beside each other: looking through a large workspace takes seconds.
    looks = [
        asyncio.ensure_future(_repeat(partial(_look_at_processes, root, limits))),
        asyncio.ensure_future(_repeat(partial(disk.find_growth, root))),
    ]
    try:
        done, _ = await asyncio.wait(looks, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()
    finally:
        for look in looks:
            look.cancel()


async def _repeat(look: Callable[[], Awaitable[str | None]]) -> str:
    while True:
        await asyncio.sleep(_PERIOD)
        if (reason := await look()) is not None:
            return reason


async def _look_at_processes(root: int, limits: CommandLimits) -> str | None:
    loop = asyncio.get_running_loop()
    look = partial(find_excess, root, processes=limits.processes, memory=limits.memory)
    reason, _ = await loop.run_in_executor(_watchers("processes"), look)
    return reason


class DiskMeter:
    """The size of a workspace, measured as rarely as its size demands."""

    def __init__(self, root: Path, limit: int) -> None:
        self._workspace, self._limit = Workspace(root), limit
        #: A running command is stopped above this size.
        self._tolerated = limit
        self._not_before = 0.0
        #: Bytes of the workspace, with what writes have added since the last look, and bytes that
        #: the disk had left then.
        self._total, self._free = 0, self._read_free()
        #: Bytes that the disk had left after the last command.
        self._free_before = self._free

    async def find_growth(self, root: int) -> str | None:
        """Return why the running command below ``root`` must be stopped, if it must."""
        if time.monotonic() < self._not_before and not self._has_shrunk():
            return None
        total, doubt = await self._measure(root)
        if total <= self._tolerated:
            return None
        return f"stopped: the workspace holds more than {format_size(self._limit)}{doubt}"

    async def find_excess(self) -> str | None:
        """Return what to say after a command if the workspace is too large."""
        total, doubt = await self._measure(None)
        self._free_before = self._free
        if total <= self._limit:
            self._tolerated = self._limit
            return None
        # Removing files must be possible.
        self._tolerated = (total if not doubt else self._limit) + _SLACK
        return (
            f"the workspace holds more than {format_size(self._limit)}{doubt}: remove files "
            "that are not needed"
        )

    async def refuse_growth(self, size: int) -> str | None:
        """Return why files may not grow by ``size`` bytes; ``None`` if they may, and will."""
        if size <= 0:
            return None
        doubt = ""
        # A measure that is not the newest may allow, but not refuse.
        if time.monotonic() >= self._not_before or self._total + size > self._limit:
            _, doubt = await self._measure(None)
        if self._total + size > self._limit:
            return (
                f"the workspace would hold more than {format_size(self._limit)}{doubt}: remove "
                "files that are not needed"
            )
        self._total += size
        return None

    def _has_shrunk(self) -> bool:
        """Return whether the disk has lost more since the last look than may still be used."""
        return self._free - self._read_free() > max(self._tolerated - self._total, _SLACK)

    def _read_free(self) -> int:
        with suppress(OSError):
            state = os.statvfs(self._workspace.root)
            return state.f_bfree * state.f_frsize
        return 0

    async def _measure(self, root: int | None) -> tuple[int, str]:
        loop, begun = asyncio.get_running_loop(), time.monotonic()
        self._free = self._read_free()
        measure = partial(self._measure_now, root)
        found = await loop.run_in_executor(_watchers("disk"), measure)
        self._total, now = found[0], time.monotonic()
        self._not_before = now + max(_DISK_PERIOD, _DISK_SHARE * (now - begun))
        return found

    def _measure_now(self, root: int | None) -> tuple[int, str]:
        unnamed = 0 if root is None else measure_unnamed_files(root)
        try:
            return unnamed + self._workspace.measure_usage(at_most=sys.maxsize), ""
        except FileRefused as error:
            # What the disk has lost since the last command may be in the part that is hidden.
            lost = max(0, self._free_before - self._free)
            return self._limit + 1 + lost, f", or cannot be measured ({error})"


@lru_cache(maxsize=256)
def get_disk_meter(root: Path, limit: int) -> DiskMeter:
    """Return the meter of a workspace: it remembers what the last command has left."""
    return DiskMeter(root, limit)


@cache
def _watchers(kind: str) -> ThreadPoolExecutor:
    """Return threads for one kind of looks, which must not wait behind anything else."""
    return ThreadPoolExecutor(max_workers=2, thread_name_prefix=f"clew-sandbox-{kind}")
