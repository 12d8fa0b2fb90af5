"""Periodic maintenance: end expired sessions, close orphaned ones, remove deleted rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from clew.record import Record
from clew.store.maintenance import erase_conversation, release_free_space
from clew.store.transactions import (
    clients,
    deletion,
    expiry,
    hook_marks,
    idempotency,
    locks,
    maintenance,
    owners,
    session_prefixes,
    undelete,
)
from clew.wording import DELETED_NOTICE

if TYPE_CHECKING:
    from clew.core.reset_policy import ResetPolicy
    from clew.store.contract import Store

log = structlog.get_logger(__name__)


class MaintenanceReport(Record):
    """The number of items found, and processed unless it was a dry run."""

    overdue: int
    orphans: int
    ghosts: int
    deleted: int


async def run_maintenance(store: Store, policy: ResetPolicy) -> MaintenanceReport:
    """Do the due maintenance, in slices that block no other work."""
    overdue = (
        await store.write(expiry.queue_expired_ends, policy=policy) if _has_expiry(policy) else 0
    )
    orphans = await store.write(maintenance.finalize_orphaned_compression_sessions)
    ghosts = await store.write(maintenance.prune_empty_ghost_sessions, notice=DELETED_NOTICE)
    deleted = await _finish_deletions(store)
    for forget in (
        idempotency.delete_expired_keys,
        deletion.delete_expired_event_keys,
        hook_marks.delete_old_marks,
        session_prefixes.delete_unused_tools,
    ):
        while await store.write(forget):
            pass
    await store.write(clients.delete_dead_clients)
    await store.write(locks.delete_abandoned_locks)
    await store.write(owners.end_lost_owners)
    await release_free_space(store)
    done = MaintenanceReport(overdue=overdue, orphans=orphans, ghosts=ghosts, deleted=deleted)
    if any((overdue, orphans, ghosts, deleted)):
        log.info("maintained", overdue=overdue, orphans=orphans, ghosts=ghosts, deleted=deleted)
    return done


async def _finish_deletions(store: Store) -> int:
    """Remove the rows of conversations whose deletion can no longer be undone."""
    due = await store.read(deletion.list_pending_deletions)
    # The deletion may be undone in between.
    ended = [each for each in due if await store.write(undelete.end_grace_period, each)]
    for conversation in ended:
        await erase_conversation(store, conversation)
    if ended:
        await store.write(deletion.delete_orphan_blobs)
    return len(ended)


async def preview_maintenance(store: Store, policy: ResetPolicy) -> MaintenanceReport:
    """Return what ``run_maintenance`` would find now; change nothing."""
    overdue = (
        await store.read(expiry.list_expired_conversations, policy=policy)
        if _has_expiry(policy)
        else []
    )
    return MaintenanceReport(
        overdue=len(overdue),
        orphans=len(await store.read(maintenance.find_orphaned_compression_sessions)),
        ghosts=len(await store.read(maintenance.find_empty_ghost_sessions)),
        deleted=len(await store.read(deletion.list_pending_deletions)),
    )


def _has_expiry(policy: ResetPolicy) -> bool:
    return policy.idle is not None or policy.daily_at is not None
