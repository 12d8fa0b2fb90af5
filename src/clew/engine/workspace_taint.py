"""Text of strangers in files: which calls write it into a workspace, and which read it there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from clew.core.tool_facts import PathFact
from clew.sandbox.changed_files import holds_changed_file, read_file_clock
from clew.store.transactions import grants, workspace_writes

if TYPE_CHECKING:
    from clew.core.call_reach import WorkspaceReach, WorkspaceWrite
    from clew.core.ids import ConversationId
    from clew.core.journal import CallKey
    from clew.core.lease import Lease
    from clew.engine.store_retry import RetryingStore
    from clew.store.contract import Tx


class WorkspaceTaint:
    """The record of what calls of a turn write, and the check of what they read."""

    def __init__(
        self,
        store: RetryingStore,
        lease: Lease,
        *,
        conversation: ConversationId,
        workspace: str,
        place: str,
    ) -> None:
        self._store, self._lease, self._conversation = store, lease, conversation
        self._workspace, self._place = workspace, place

    async def begin_call(
        self, key: CallKey, reach: WorkspaceReach, *, untrusted: bool, unseen: bool
    ) -> bool:
        """
        Store what a call is about to write, if it may be of strangers, or nobody saw it.

        :return: whether it may read text of strangers, and change the file that holds it
        """
        if not reach.writes:
            return False
        tainted, writes = await self._store.read(_read_taint, self._conversation, self._workspace)
        kept = [PathFact(path=path, inside=True) for path in reach.keeps]
        reads = await _hold_changed(reach.reads, writes)
        untrusted = untrusted or tainted or reads or await _hold_changed(kept, writes)
        if untrusted or unseen:
            await self._store.write(
                workspace_writes.record_writes,
                self._lease,
                key,
                workspace=self._workspace,
                place=self._place,
                paths=reach.writes,
                at=read_file_clock(),
                untrusted=untrusted,
                unseen=unseen,
            )
        return reads

    async def has_read(self, reach: WorkspaceReach) -> bool:
        """Return whether a call that has ended may have read text of strangers."""
        if not reach.reads:
            return False
        writes = await self._store.read(workspace_writes.list_untrusted_writes, self._workspace)
        return await _hold_changed(reach.reads, writes)


async def _hold_changed(
    places: list[PathFact] | tuple[PathFact, ...], writes: list[WorkspaceWrite]
) -> bool:
    if not places or not writes:
        return False
    return await asyncio.to_thread(holds_changed_file, places, writes)


def _read_taint(
    t: Tx, conversation: ConversationId, workspace: str
) -> tuple[bool, list[WorkspaceWrite]]:
    return (
        grants.is_tainted(t, conversation),
        workspace_writes.list_untrusted_writes(t, workspace),
    )
