"""Maintenance: what is over is ended, what is forgotten closed, what is deleted removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from clew.store.transactions import deletion, expiry, idempotency, maintenance

if TYPE_CHECKING:
    from clew.core.reset import ResetPolicy
    from clew.store.contract import Store

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Maintained:
    """How much of each was found, and done unless it was a dry run."""

    overdue: int
    orphans: int
    ghosts: int
    deleted: int


async def maintain(store: Store, policy: ResetPolicy) -> Maintained:
    """Do what is due, in slices that hold nobody up."""
    overdue = 0
    if policy.idle is not None or policy.daily_at is not None:
        overdue = await store.write(expiry.end_overdue, policy=policy)
    orphans = await store.write(maintenance.finalize_orphaned_compression_sessions)
    ghosts = await store.write(maintenance.prune_empty_ghost_sessions)
    deleted = await _finish_deletions(store)
    await store.write(idempotency.forget_keys)
    await store.write(deletion.forget_events)
    done = Maintained(overdue=overdue, orphans=orphans, ghosts=ghosts, deleted=deleted)
    if any((overdue, orphans, ghosts, deleted)):
        log.info("maintained", overdue=overdue, orphans=orphans, ghosts=ghosts, deleted=deleted)
    return done


async def _finish_deletions(store: Store) -> int:
    """Remove the rows of conversations whose deletion was interrupted."""
    half = await store.read(deletion.half_deleted)
    for conversation in half:
        while await store.write(deletion.delete_slice, conversation):
            pass
    return len(half)


async def would_maintain(store: Store) -> Maintained:
    """What ``maintain`` would find now; changes nothing."""
    return Maintained(
        overdue=0,
        orphans=len(await store.read(maintenance.orphaned_compression_sessions)),
        ghosts=len(await store.read(maintenance.empty_ghost_sessions)),
        deleted=len(await store.read(deletion.half_deleted)),
    )
