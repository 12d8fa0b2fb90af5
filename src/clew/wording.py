"""
The sentences of the engine that people read in chats.

Some are stored in the same commit as the change that they tell: transactions take these as
arguments and return data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.core.access import ButtonOutcome
from clew.core.approval import ApprovalState
from clew.core.session import DAILY, IDLE, RESET

if TYPE_CHECKING:
    from clew.core.approval import Approval

#: Notices to a chat whose conversation another front deleted or restored.
DELETED_NOTICE: Final = (
    "This conversation was deleted elsewhere. Your next message starts a new one."
)
RESTORED_NOTICE: Final = (
    "The conversation that was deleted here is back: your next message goes on with it."
)
IMPORTED_NOTICE: Final = (
    "An imported conversation continues here. Send /new to start another one instead."
)
NOT_ALLOWED_NOTICE: Final = "Only whoever asked for it, or an operator, may answer that."

_BUTTON_REPLIES: Final = {
    ButtonOutcome.NO_ACCESS: "You may not answer that.",
    ButtonOutcome.ANSWERED_BEFORE: "That question was answered.",
    ButtonOutcome.UNKNOWN: "There is nothing behind that button any more.",
    ButtonOutcome.GONE: "Too late: that question is gone.",
    ButtonOutcome.WRONG_CHAT: "That is to be answered where it was asked.",
    ButtonOutcome.NOT_ALLOWED: NOT_ALLOWED_NOTICE,
}
_APPROVAL_STATES: Final = {
    ApprovalState.OPEN: "Waiting",
    ApprovalState.APPROVED: "Allowed",
    ApprovalState.DENIED: "Refused",
    ApprovalState.EXPIRED: "Expired",
}


def format_end_notice(conversation: str, reason: str) -> str | None:
    """Return the immediate notice to a chat whose conversation another front ended."""
    if reason in (IDLE, DAILY):
        # Sent with the next message: no notification for this alone.
        return None
    if reason == RESET:
        return (
            "This conversation was ended elsewhere. Your next message starts a new one; "
            f"/resume {conversation} goes on with this one."
        )
    return "This conversation was closed elsewhere. Your next message goes on with it."


def format_approval_state(approval: Approval, state: ApprovalState) -> str:
    """Return an approval's state as a short text, shown in place of its buttons."""
    return f"{_APPROVAL_STATES[state]}: {approval.tool}"


def format_button_reply(outcome: ButtonOutcome, became: str) -> str:
    """Return the reply to whoever pressed a button; ``became`` is the approval's state."""
    if outcome is ButtonOutcome.RECORDED:
        return became
    if outcome is ButtonOutcome.TOO_LATE:
        return f"Too late. {became}"
    return _BUTTON_REPLIES[outcome]
