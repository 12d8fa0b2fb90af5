"""Approvals: tool calls that wait for a person's word."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.core.chat import Button, Outgoing
from clew.core.ids import ApprovalId

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.ids import ConversationId, TurnId
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


#: Arguments of more characters cannot be shown in a chat, and so not be approved there.
LONGEST_SHOWN = 30_000
_YES, _NO = "yes", "no"


def can_be_shown(approval: Approval) -> bool:
    """Whether a chat can show all that would run."""
    return len(approval.args) <= LONGEST_SHOWN


def question(approval: Approval) -> Outgoing:
    """What a person is asked in a chat: all of what would run, to the letter."""
    if not can_be_shown(approval):
        return Outgoing(
            text=f"The agent wants to run **{approval.tool}** with {len(approval.args):,} "
            "characters of arguments, which is too long to be shown here. Whoever has a terminal "
            f"on its machine can look and answer: `clew chat -c {approval.conversation_id}`"
        )
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", approval.args)), default=0))
    return Outgoing(
        text=f"The agent wants to run **{approval.tool}** with\n\n"
        f"{fence}json\n{approval.args}\n{fence}\n\n/approve allows it, /deny refuses it.",
        buttons=(
            Button(label="Allow", data=f"{_YES}:{approval.id}"),
            Button(label="Refuse", data=f"{_NO}:{approval.id}"),
        ),
    )


def pressed(data: str) -> tuple[ApprovalId, bool] | None:
    """Which question a button under one answers, and how; ``None`` for any other button."""
    word, _, approval = data.partition(":")
    if word not in (_YES, _NO):
        return None
    return ApprovalId(approval), word == _YES
