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
#: The data of a button that only says what became of a question.
CLOSED = "closed"
#: Characters that are not seen, or that change the order in which others are seen.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U000e0000-\U000e0fff]"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """An open question with its place among all that its turn has asked."""

    #: From 1; it stays the same when others are answered.
    number: int
    approval: Approval


def can_be_shown(approval: Approval) -> bool:
    """Whether a chat can show all that would run."""
    return len(visible(approval.args)) <= LONGEST_SHOWN


def question(approval: Approval, *, number: int = 1) -> Outgoing:
    """What a person is asked in a chat: all of what would run, to the letter."""
    if not can_be_shown(approval):
        return Outgoing(
            text=f"The agent wants to run **{approval.tool}** with {len(approval.args):,} "
            "characters of arguments, which is too long to be shown here. Whoever has a terminal "
            f"on its machine can look and answer: `clew chat -c {approval.conversation_id}`"
        )
    args = visible(approval.args)
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", args)), default=0))
    which = "" if number == 1 else f" {number}"
    return Outgoing(
        text=f"The agent wants to run **{approval.tool}** with\n\n"
        f"{fence}json\n{args}\n{fence}\n\n"
        f"/approve{which} allows it, /deny{which} refuses it.",
        buttons=(
            Button(label="Allow", data=f"{_YES}:{approval.id}"),
            Button(label="Refuse", data=f"{_NO}:{approval.id}"),
        ),
    )


def visible(args: str) -> str:
    """Arguments with a JSON escape for each sign that is not seen: the same arguments."""
    return _UNSEEN.sub(_escaped, args)


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[n : n + 2].hex()}" for n in range(0, len(units), 2))


def told(approval: Approval) -> str:
    """What became of a question, in a word for whoever looks at it later."""
    words = {
        ApprovalState.OPEN: "Waiting",
        ApprovalState.APPROVED: "Allowed",
        ApprovalState.DENIED: "Refused",
        ApprovalState.EXPIRED: "Expired",
    }
    return f"{words[approval.state]}: {approval.tool}"


def pressed(data: str) -> tuple[ApprovalId, bool] | None:
    """Which question a button under one answers, and how; ``None`` for any other button."""
    word, _, approval = data.partition(":")
    if word not in (_YES, _NO):
        return None
    return ApprovalId(approval), word == _YES
