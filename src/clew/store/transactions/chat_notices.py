"""Notices to people in chats and logs, in the commit of what they tell."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from clew.core.channel_events import OutboundMessage
from clew.core.delivery import DeliveryKind
from clew.core.entry import make_notice
from clew.core.ids import DeliveryId, EntryId
from clew.store.transactions import entries, leases
from clew.store.transactions.deliveries import deliver_to_chat
from clew.store.transactions.sessions import get_head

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.core.ids import ConversationId, OwnerId
    from clew.core.route import RouteKey
    from clew.store.contract import Tx


def tell_people(
    t: Tx,
    conversation: ConversationId,
    text: str,
    *,
    name: str,
    owner: OwnerId,
    route: RouteKey | None,
) -> None:
    """
    Append a notice to a conversation, outside of its context, and deliver it to a chat.

    ``name`` identifies the notice. A closed conversation stays closed, and gets no entry.

    :raises LeaseHeld: if somebody works on the conversation
    """
    session = get_head(t, conversation)
    if session.is_open:
        lease = leases.acquire_lease(t, conversation, owner=owner).lease
        entries.append_entries(t, lease, session.id, [make_notice(EntryId(f"ent_{name}"), text)])
        leases.release_lease(t, lease)
    deliver_to_chat(
        t,
        conversation,
        route,
        OutboundMessage(text=text, markup=False),
        id=DeliveryId(f"dlv_{name}"),
        kind=DeliveryKind.NOTICE,
    )


def notify_chats(
    t: Tx,
    conversation: ConversationId,
    routes: Iterable[RouteKey],
    notice: str | OutboundMessage | None,
    *,
    event: str,
    but: RouteKey | None = None,
) -> None:
    """
    Send a notice to each chat among ``routes``, except the one that made the change.

    ``event`` identifies the change: repeating it changes nothing. Without a notice nothing is
    sent.
    """
    if notice is None:
        return
    message = OutboundMessage(text=notice, markup=False) if isinstance(notice, str) else notice
    for route in routes:
        if route == but:
            continue
        digest = hashlib.sha256(f"{event}\n{route}".encode()).hexdigest()[:32]
        deliver_to_chat(
            t,
            conversation,
            route,
            message,
            id=DeliveryId(f"dlv_{digest}"),
            kind=DeliveryKind.NOTICE,
        )
