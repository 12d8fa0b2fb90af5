"""Removal of what is stored about writes to workspaces whose files are gone, or changed since."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clew.core.call_reach import can_be_written, was_written
from clew.sandbox.changed_files import exists, list_changes, read_file_clock
from clew.store.transactions import workspace_write_pruning as pruning

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clew.store.contract import Store
    from clew.store.transactions.workspace_write_pruning import StoredWrite

#: Milliseconds after its end before which a write is left alone.
_AGE: Final = 3_600_000
#: Transactions of one pass for each workspace.
_SLICES: Final = 20


async def prune_workspace_writes(store: Store, place: str) -> None:
    """Remove the writes of this machine and home that no file repeats any more."""
    workspaces = await store.read(pruning.list_written_workspaces, place)
    for _ in range(_SLICES if workspaces else 0):
        if not await store.write(pruning.delete_repeated_writes):
            break
    for workspace in workspaces:
        await _prune_workspace(store, place, workspace)


async def _prune_workspace(store: Store, place: str, workspace: str) -> None:
    # What changes meanwhile is of writes that have not ended.
    before, changes = read_file_clock() - _AGE, await asyncio.to_thread(list_changes, workspace)
    after = (-1, "", "")
    for _ in range(_SLICES):
        found = await store.read(
            pruning.list_ended_writes, place, workspace, after=after, before=before
        )
        if not found:
            return
        gone = await asyncio.to_thread(_find_gone, found, changes)
        if gone:
            await store.write(pruning.delete_writes, gone)
        last = found[-1]
        after = (last.write.began_at, last.call, last.write.path)


def _find_gone(
    found: Sequence[StoredWrite], changes: Mapping[str, int] | None
) -> list[StoredWrite]:
    return [one for one in found if not _is_needed(one, changes)]


def _is_needed(one: StoredWrite, changes: Mapping[str, int] | None) -> bool:
    """Return whether a file may hold what was written; ``None`` for too many files to look at."""
    path = one.write.path
    if changes is None:
        # What is gone from its path may have been moved.
        return one.untrusted or path == "" or exists(path)
    if one.unseen and (path in changes if path else _any_since(one, changes)):
        return True
    return one.untrusted and any(was_written(at, [one.write]) for at in changes.values())


def _any_since(one: StoredWrite, changes: Mapping[str, int]) -> bool:
    """Return whether a file may have been written, and changed since by somebody who was seen."""
    return any(can_be_written(at, one.write) for at in changes.values())
