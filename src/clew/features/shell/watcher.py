"""The watcher of processes: one for each machine and home, beside the turns."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Final

import structlog

from clew.config.workspaces import name_place
from clew.errors import StoreError
from clew.features.shell import processes, supervision
from clew.file_locks import try_lock_descriptor
from clew.sandbox.process_folder import Life

if TYPE_CHECKING:
    from clew.features.shell.processes import ShellProcess
    from clew.plugin import FeatureContext
    from clew.store.contract import Tx

log = structlog.get_logger(__name__)

#: Seconds between two looks.
PERIOD: Final = 1.0
#: Processes that are read at a time.
_SLICE: Final = 50
#: Milliseconds for which the output of a process that has ended is kept.
KEEP: Final = 7 * 24 * 3600 * 1000
#: Seconds after which a folder without a row is that of a deleted conversation.
_ORPHAN_AGE: Final = 600.0
#: Looks between two searches for what can be removed.
_CLEANING: Final = 600
_LOCK: Final = "watcher.lock"
_TURN_ENDED: Final = "stopped: its turn had ended"
_DELETED: Final = "stopped: its conversation was deleted"


class ProcessWatcher:
    """Tells the ends of the processes of this machine, and stops those that nobody waits for."""

    def __init__(self, context: FeatureContext) -> None:
        self._context = context
        self._home = context.settings.home.resolve() / supervision.PROCESS_FOLDER

    async def run(self) -> None:
        """Watch for ever; wait while another process of this machine does."""
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self._home / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # The kernel frees it with its holder: the next gateway watches at once.
            while not try_lock_descriptor(lock):  # noqa: ASYNC110
                await asyncio.sleep(PERIOD)
            await self._watch()
        finally:
            os.close(lock)

    async def _watch(self) -> None:
        looks = 0
        while True:
            await self.look()
            if looks % _CLEANING == 0:
                await self.clean()
            looks += 1
            await asyncio.sleep(PERIOD)

    async def look(self) -> None:
        """Look once at each process that has not ended."""
        store, after = self._context.store, ""
        # A gateway at which nothing runs reads once in each look; one with many, some at a time.
        while found := await store.read(processes.list_open, after=after, limit=_SLICE):
            if not after and await self._stop_abandoned():
                continue
            for process in found:
                if supervision.is_here(self._context.settings, process):
                    await self._look_at(process)
            if len(found) < _SLICE:
                return
            after = found[-1].id

    async def _stop_abandoned(self) -> bool:
        """Ask for the end of the processes that have no use; return whether there were any."""
        store = self._context.store
        abandoned = list(filter(self._is_abandoned, await store.read(processes.list_abandoned)))
        for process in abandoned:
            await store.write(processes.request_stop, process.id, _TURN_ENDED)
        return bool(abandoned)

    def _is_abandoned(self, process: ShellProcess) -> bool:
        """Return whether a process has no use: nobody waits for it, or nobody will start it."""
        settings = self._context.settings
        if not process.background:
            return True
        folder = supervision.find_folder(settings, process.id)
        return process.host == name_place(settings) and folder.look() is Life.NEW

    async def _look_at(self, process: ShellProcess) -> None:
        try:
            if process.stop_reason is not None:
                await self._carry_out_stop(process)
            await supervision.settle(self._context, process)
        except StoreError:
            raise
        except Exception:  # one process must not keep the ends of others from being told
            log.exception("process_not_watched", process=process.id)

    async def _carry_out_stop(self, process: ShellProcess) -> None:
        """Have a supervisor stop its process, or end a process that was never started."""
        assert process.stop_reason is not None
        folder = supervision.find_folder(self._context.settings, process.id)
        folder.ask_to_stop(process.stop_reason)
        await supervision.settle_unstarted(self._context, process)

    async def clean(self) -> None:
        """Remove the output of processes that ended long ago, and of deleted conversations."""
        store, settings = self._context.store, self._context.settings
        old = await store.read(_list_old)
        for process in old:
            supervision.find_folder(settings, process).remove()
        await store.write(processes.mark_pruned, old)
        names = await asyncio.to_thread(self._list_old_folders)
        for name in await store.read(processes.find_unknown, names):
            folder = supervision.find_folder(settings, name)
            if folder.look() is Life.ALIVE:
                folder.ask_to_stop(_DELETED)
            else:
                folder.remove()

    def _list_old_folders(self) -> list[str]:
        """Return the names of the folders that a process without a row may have left."""
        now = time.time()
        return [
            one.name
            for one in self._home.iterdir()
            if one.is_dir() and now - one.stat().st_mtime > _ORPHAN_AGE
        ]


def _list_old(t: Tx) -> list[str]:
    return processes.list_prunable(t, before=t.now - KEEP)
