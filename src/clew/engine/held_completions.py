"""Completions that begin no turn: they are stored, and read with the next message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from clew import wording
from clew.core.entry import make_notice
from clew.engine.turn_log import compose_user_message
from clew.store.transactions import completions, entries, inbox, leases, turns

if TYPE_CHECKING:
    from clew.core.ids import SessionIdFactory
    from clew.core.inbox import InboxItem
    from clew.core.lease import Lease
    from clew.core.system_note import SystemNote
    from clew.engine.services import EngineServices
    from clew.store.contract import Tx

log = structlog.get_logger(__name__)


async def hold_completion(
    services: EngineServices, lease: Lease, item: InboxItem, reason: SystemNote
) -> None:
    """Store a completion without a turn, tell people once, and release the lease."""
    await services.store.write(
        _hold_completion, lease, item, reason, session_ids=services.session_ids
    )
    log.warning("completion_held", conversation=lease.conversation_id, reason=reason.value)


def _hold_completion(
    t: Tx, lease: Lease, item: InboxItem, reason: SystemNote, *, session_ids: SessionIdFactory
) -> None:
    if not inbox.mark_executed(t, item.id, note=reason.value):
        leases.release_lease(t, lease)
        return
    session = turns.ensure_open_session(t, lease, f"{item.id}:reopen", session_ids)
    drafts = [compose_user_message(item)]
    if (notice := completions.make_notice_id(t, item, reason)) is not None:
        drafts.append(make_notice(notice, wording.format_hold_notice(reason)))
        completions.tell_chat_of_hold(t, item, notice, reason)
    entries.append_entries(t, lease, session, drafts)
    leases.release_lease(t, lease)
