"""Text of strangers in the files of a workspace, for programs that are no tool calls."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from clew.core.call_reach import overlaps
from clew.core.tool_facts import CONFINED_LEVELS, READ_ONLY_LEVEL, PathFact
from clew.sandbox.changed_files import holds_foreign_file, list_received, read_file_clock
from clew.store.transactions import workspace_writes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from clew.core.call_reach import WorkspaceWrite
    from clew.store.contract import Store


async def holds_foreign_text(store: Store, workspace: str, path: str | None = None) -> bool:
    """Return whether a file, or any of a workspace, may hold text of strangers."""
    writes = await store.read(workspace_writes.list_untrusted_writes, workspace)
    return await asyncio.to_thread(_holds_foreign, workspace, path, writes)


async def may_read_foreign_text(store: Store, workspace: str, level: str, *, since: int) -> bool:
    """Return whether a command that began at a time may read, and so repeat, text of strangers."""
    if level not in CONFINED_LEVELS:
        return True
    writes = await store.read(workspace_writes.list_untrusted_writes, workspace)
    # What was written meanwhile may be read, and gone.
    if overlaps(writes, since):
        return True
    return await asyncio.to_thread(_holds_foreign, workspace, None, writes)


def _holds_foreign(workspace: str, path: str | None, writes: Sequence[WorkspaceWrite]) -> bool:
    if path is None:
        places = [PathFact(path=workspace, inside=True, extent="tree")]
    else:
        # A link, and what it leads to.
        places = [PathFact(path=one, inside=True) for one in (path, os.path.realpath(path))]
    return holds_foreign_file(places, writes, workspace=workspace)


class ProgramWrites:
    """The writes of a command that no call began, and the origin of its output."""

    def __init__(self, store: Store, name: str, *, workspace: str, place: str, level: str) -> None:
        self._store, self._name = store, name
        self._workspace, self._place, self._level = workspace, place, level
        self.untrusted = False

    @asynccontextmanager
    async def following(self, *, untrusted: bool) -> AsyncGenerator[None]:
        """Follow the command while it runs; ``untrusted`` if strangers may have written it."""
        since = read_file_clock()
        self.untrusted = untrusted or await self._reads_foreign_text(since)
        if self._level != READ_ONLY_LEVEL:
            await self._store.write(
                workspace_writes.record_program,
                self._name,
                self._workspace,
                place=self._place,
                at=read_file_clock(),
                untrusted=self.untrusted,
                unseen=self._level in CONFINED_LEVELS,
            )
            await self._store.write(
                workspace_writes.record_received,
                self._workspace,
                place=self._place,
                received=await asyncio.to_thread(list_received, self._workspace),
            )
        try:
            yield
        finally:
            self.untrusted = self.untrusted or await self._reads_foreign_text(since)
            await self._store.write(
                workspace_writes.end_program,
                self._name,
                at=read_file_clock(),
                untrusted=self.untrusted,
            )

    async def _reads_foreign_text(self, since: int) -> bool:
        return await may_read_foreign_text(self._store, self._workspace, self._level, since=since)
