"""Leases: the right to write to one conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.ids import ConversationId, OwnerId


class Lease(Record):
    """Exclusive right of one owner; ``fence`` rises per owner, and each write names both."""

    conversation_id: ConversationId
    owner: OwnerId
    fence: int
    expires_at: datetime
