"""Approvals: tool calls that wait for a person's word."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.ids import ApprovalId, ConversationId, TurnId
    from clew.core.route import RouteKey


class ApprovalState(enum.Enum):
    OPEN = "open"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"


MOVES = {
    ApprovalState.OPEN: frozenset(
        {ApprovalState.APPROVED, ApprovalState.DENIED, ApprovalState.EXPIRED}
    ),
    ApprovalState.APPROVED: frozenset[ApprovalState](),
    ApprovalState.DENIED: frozenset[ApprovalState](),
    ApprovalState.EXPIRED: frozenset[ApprovalState](),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Approval:
    id: ApprovalId
    conversation_id: ConversationId
    turn_id: TurnId
    step: int
    call_id: str
    tool: str
    #: The arguments as JSON, to the letter as they will be run.
    args: str
    route: RouteKey | None
    state: ApprovalState
    asked_at: datetime
    expires_at: datetime
    answered_by: str | None
    note: str | None
