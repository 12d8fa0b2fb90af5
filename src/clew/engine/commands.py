"""Items of the line that are no messages: the holder of the lease carries them out."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import structlog

from clew.core.ids import session_id
from clew.errors import UsageError
from clew.store.transactions import inbox, leases, resets, rewinds

if TYPE_CHECKING:
    from clew.core.inbox import InboxItem
    from clew.core.lease import Lease
    from clew.engine.turns import Means
    from clew.store.contract import Tx

log = structlog.get_logger(__name__)

REWIND = "rewind"
COMPRESS = "compress"


async def execute(means: Means, lease: Lease, item: InboxItem) -> None:
    """Carry out one item, record its outcome and let the lease go."""
    note: str | None = None
    if item.text == COMPRESS:
        note = await _compress(means, lease, item)
    await means.store.write(_carry_out, lease, item, note=note)
    if item.text == resets.END:
        means.facts.ended(await means.store.read(inbox.get_item, item.id))
    log.info("command_executed", conversation=lease.conversation_id, command=item.text)


async def _compress(means: Means, lease: Lease, item: InboxItem) -> str:
    done = await means.compactions.compact(
        lease.conversation_id,
        owner=lease.owner,
        lease=lease,
        focus=json.loads(item.payload).get("focus"),
        on_demand=True,
        # Carried out again after a crash, it finds that it was done.
        operation=item.id,
    )
    return json.dumps(dataclasses.asdict(done))


def _carry_out(t: Tx, lease: Lease, item: InboxItem, *, note: str | None) -> None:
    match item.text:
        case _ if note is not None:
            inbox.executed(t, item.id, note=note)
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
