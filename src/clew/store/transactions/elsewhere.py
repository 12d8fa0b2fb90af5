"""What happens to a chat's conversation from elsewhere is told there, in the same commit."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from clew.core.chat import OutboundMessage
from clew.core.delivery import DeliveryKind
from clew.core.ids import DeliveryId
from clew.store.transactions.deliveries import tell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.core.ids import ConversationId
    from clew.core.route import RouteKey
    from clew.store.contract import Tx


def tell_chats(
    t: Tx,
    conversation: ConversationId,
    routes: Iterable[RouteKey],
    text: str,
    *,
    event: str,
    but: RouteKey | None = None,
) -> None:
    """
    Tell each chat among ``routes`` what happened, except the one that asked for it.

    ``event`` names what happened: telling it again changes nothing.
    """
    for route in routes:
        if route == but:
            continue
        digest = hashlib.sha256(f"{event}\n{route}".encode()).hexdigest()[:32]
        tell(
            t,
            conversation,
            route,
            OutboundMessage(text=text, markup=False),
            id=DeliveryId(f"dlv_{digest}"),
            kind=DeliveryKind.NOTICE,
        )
