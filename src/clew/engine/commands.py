"""Items of the line that are no messages: the holder of the lease carries them out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import structlog

from clew.core.ids import session_id
from clew.errors import UsageError
from clew.store.transactions import inbox, leases, resets, rewinds

if TYPE_CHECKING:
    from clew.core.inbox import InboxItem
    from clew.core.lease import Lease
    from clew.store.contract import Store, Tx

log = structlog.get_logger(__name__)

REWIND = "rewind"


async def execute(store: Store, lease: Lease, item: InboxItem) -> None:
    """Carry out one item and record its outcome, in one commit; let the lease go."""
    await store.write(_carry_out, lease, item)
    log.info("command_executed", conversation=lease.conversation_id, command=item.text)


def _carry_out(t: Tx, lease: Lease, item: InboxItem) -> None:
    match item.text:
        case resets.END:
            resets.carry_out_end(t, lease, item)
        case _ if item.text == REWIND:
            _rewind(t, lease, item)
        case _:
            inbox.cancel(t, item.id, note=f"there is no command {item.text!r}")
    leases.release(t, lease)


def _rewind(t: Tx, lease: Lease, item: InboxItem) -> None:
    to: int = json.loads(item.payload)["to"]
    try:
        session = rewinds.rewind(t, lease, to=to, operation=item.id, session_ids=session_id)
    except UsageError as error:
        inbox.cancel(t, item.id, note=str(error))
    else:
        inbox.executed(t, item.id, note=session.id)
