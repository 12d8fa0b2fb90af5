"""Text of strangers in files: which calls write it into a workspace, and which read it there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from clew.core.call_reach import overlaps
from clew.core.tool_facts import PathFact
from clew.sandbox.changed_files import holds_foreign_file, list_received, read_file_clock
from clew.store.transactions import grants, workspace_writes

if TYPE_CHECKING:
    from collections.abc import Sequence

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

        :return: whether it may read text of strangers, before it can change the file that holds it
        """
        if not (reach.reads or reach.writes):
            return False
        tainted, writes = await self._store.read(_read_taint, self._conversation, self._workspace)
        reads = await self._hold_foreign(reach.reads, writes)
        if not reach.writes:
            return reads
        kept = [PathFact(path=path, inside=True) for path in reach.keeps]
        untrusted = untrusted or tainted or reads or await self._hold_foreign(kept, writes)
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
        if reach.runs_command and reads:
            # A command may move the folder of files that were sent: their times stay the same.
            await self._store.write(
                workspace_writes.record_received,
                self._workspace,
                place=self._place,
                received=await asyncio.to_thread(list_received, self._workspace),
            )
        return reads

    async def has_read(self, reach: WorkspaceReach, *, since: int) -> bool:
        """Return whether a call that began at a time may have read text of strangers."""
        if not reach.reads:
            return False
        writes = await self._store.read(workspace_writes.list_untrusted_writes, self._workspace)
        if reach.runs_command and overlaps(writes, since):
            return True
        return await self._hold_foreign(reach.reads, writes)

    async def _hold_foreign(
        self, places: Sequence[PathFact], writes: Sequence[WorkspaceWrite]
    ) -> bool:
        if not places:
            return False
        return await asyncio.to_thread(
            holds_foreign_file, places, writes, workspace=self._workspace
        )


def _read_taint(
    t: Tx, conversation: ConversationId, workspace: str
) -> tuple[bool, list[WorkspaceWrite]]:
    return (
        grants.is_tainted(t, conversation),
        workspace_writes.list_untrusted_writes(t, workspace),
    )
