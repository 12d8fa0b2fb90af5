"""Notices to chats about changes that another front made, in the same commit."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from clew.core.channel_events import OutboundMessage
from clew.core.delivery import DeliveryKind
from clew.core.ids import DeliveryId
from clew.store.transactions.deliveries import deliver_to_chat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.core.ids import ConversationId
    from clew.core.route import RouteKey
    from clew.store.contract import Tx


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
