"""
The sentences of the engine that people and models read.

The store records codes, which are put into words here when they are shown. A few notices are
stored as text, in the same commit as the change: transactions take these as arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from clew.core.access import ButtonOutcome
from clew.core.approval import ApprovalState
from clew.core.attachments import MAX_FILE_BYTES
from clew.core.byte_size import format_size
from clew.core.channel_events import ChatNotice
from clew.core.compaction import SummaryFault, estimate_tokens
from clew.core.completion import MAX_HOPS, TASK
from clew.core.expiry_notice import ExpiredConversation
from clew.core.session import DAILY, IDLE, RESET
from clew.core.system_note import SystemNote
from clew.record import replace

if TYPE_CHECKING:
    from clew.core.approval import Approval
    from clew.core.channel_events import OutboundMessage
    from clew.core.completion import Cause
    from clew.core.sent_files import SentFile

#: Notices to a chat whose conversation another front deleted or restored.
DELETED_NOTICE: Final = (
    "This conversation was deleted elsewhere. Your next message starts a new one."
)
RESTORED_NOTICE: Final = "The deleted conversation was restored: your next message continues it."
IMPORTED_NOTICE: Final = (
    "An imported conversation continues here. Send /new to start another one instead."
)
NOT_ALLOWED_NOTICE: Final = "You may not answer that here: an operator can."

#: Reasons why a compaction did nothing.
NOTHING_TO_COMPACT: Final = "there is nothing to compact yet"

_NOTES: Final = {
    SystemNote.BUSY: "another turn is unfinished",
    SystemNote.CALLER_LEFT: "the caller disconnected",
    SystemNote.CONVERSATION_DELETED: "the conversation was deleted",
    SystemNote.CONVERSATION_RESET: "a new conversation was started",
    SystemNote.MESSAGE_DELETED: "its sender deleted it",
    SystemNote.NEW_MESSAGE: "the user wrote instead",
    SystemNote.NOT_IN_TIME: "not delivered in time",
    SystemNote.PERSON_EXCLUDED: "the person has no access here any more",
    SystemNote.ROLLED_BACK: "rolled back",
    SystemNote.ROUNDS_WITHOUT_PERSON: "too many turns ran in a row without a person",
    SystemNote.TURN_ENDED: "the turn has ended",
    SystemNote.UNATTENDED_TOKENS_SPENT: "the tokens of today's turns without a person are spent",
}
_NOTICES: Final = {
    ChatNotice.BUSY: (
        "Your message was not accepted, because another answer is in progress. Send it again "
        "when that answer is complete."
    ),
    ChatNotice.UNFINISHED: "(This answer was not finished.)",
    ChatNotice.ROUNDS_WITHOUT_PERSON: (
        f"{MAX_HOPS} rounds ran without you. What has ended since is stored, and the agent reads "
        "it with your next message."
    ),
    ChatNotice.UNATTENDED_TOKENS_SPENT: (
        "Today's tokens for turns that nobody began are spent (agent.unattended_tokens). What has "
        "ended since is stored, and the agent reads it with your next message."
    ),
}
_REPORT_END: Final = "[end of the report]"
_EXPIRY_CAUSES: Final = {IDLE: " after a pause", DAILY: " with the daily reset"}
_BUTTON_REPLIES: Final = {
    ButtonOutcome.REASON_ASKED: "Write the reason after /deny.",
    ButtonOutcome.NO_ACCESS: "You may not answer that.",
    ButtonOutcome.ANSWERED_BEFORE: "That question was answered.",
    ButtonOutcome.UNKNOWN: "That button is no longer active.",
    ButtonOutcome.GONE: "Too late: that question is gone.",
    ButtonOutcome.WRONG_CHAT: "Answer that in the chat where it was asked.",
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
            "This conversation was ended elsewhere. Your next message starts a new one; /resume "
            f"{conversation} continues this one."
        )
    return "This conversation was closed elsewhere. Your next message continues it."


def format_approval_state(approval: Approval, state: ApprovalState) -> str:
    """Return an approval's state as a short text, shown in place of its buttons."""
    return f"{_APPROVAL_STATES[state]}: {approval.tool}"


def format_button_reply(outcome: ButtonOutcome, became: str) -> str:
    """Return the reply to the press of a button; ``became`` is the approval's state."""
    if outcome is ButtonOutcome.RECORDED:
        return became
    if outcome is ButtonOutcome.TOO_LATE:
        return f"Too late. {became}"
    return _BUTTON_REPLIES[outcome]


def format_hold_notice(reason: SystemNote) -> str:
    """Return the notice that what has ended begins no turn."""
    return _NOTICES[ChatNotice(reason.value)]


def format_completion_for_model(cause: Cause, text: str) -> str:
    """Return the text of a completion as the model reads it."""
    # Its end cannot be written inside of it.
    text = text.strip().replace(_REPORT_END, "[end of the report ]")
    if cause.kind == TASK:
        return f"[task from another agent; not written by a person]\n{text}\n{_REPORT_END}"
    return f"[report of {cause.kind} {cause.id}; not written by a person]\n{text}\n{_REPORT_END}"


def format_task_reason(why: str, task: str) -> str:
    """Return why a call of another agent's task needs approval."""
    return f"{why}; it is for the task {task!r}"


def describe_note(note: str | None) -> str | None:
    """Return the words for a stored note: a code of Clew, or a text, which stays as it is."""
    return _NOTES.get(cast("SystemNote", note), note)


def find_file_limit(platform: str, size: int, most: int | None) -> str | None:
    """
    Return why a file cannot be sent to a chat; ``None`` if it can.

    ``most`` is the platform's limit, 0 for one without files, ``None`` where it is not known.
    """
    if most == 0:
        return f"files cannot be sent to {platform}"
    if most is not None and size > most:
        return f"{platform} takes files of at most {format_size(most)}"
    return None


def format_unsent_file(file: SentFile, why: str) -> str:
    """Return the line in place of a file that a platform does not take."""
    named = f"{' '.join(file.name.split())} ({format_size(file.size)})"
    return f"[The file {named} was not sent: {why}. The dashboard and the API have it.]"


def word_message(message: OutboundMessage) -> OutboundMessage:
    """Return a message with the text of its notice."""
    if message.notice is None:
        return message
    return replace(message, text=_format_notice(message.notice, message.details))


def _format_notice(notice: ChatNotice, details: tuple[str, ...]) -> str:
    if notice is ChatNotice.EXPIRED:
        conversation, reason = details
        return format_expiry_notice(ExpiredConversation(conversation=conversation, reason=reason))
    if notice is ChatNotice.REASON:
        number, tool = details
        which = "" if number == "1" else f" {number}"
        return (
            f"To refuse {tool} with a reason, write it after the command: /deny{which} REASON. The "
            "agent is told the reason; until then the call waits."
        )
    return _NOTICES[notice]


def format_expiry_notice(left: ExpiredConversation) -> str:
    """Return the notice to a person whose conversation expired."""
    return (
        f"A new conversation was started{_EXPIRY_CAUSES.get(left.reason, '')}; /resume "
        f"{left.conversation} continues the previous one."
    )


def format_expiry_for_model(left: ExpiredConversation) -> str:
    """Return the note to the model that the previous conversation expired."""
    return (
        "This conversation has just begun. The one before it ended"
        f"{_EXPIRY_CAUSES.get(left.reason, '')}, and nothing that was said in it is known to "
        "you. If the person refers to it, say so and do not guess: with "
        f"/resume {left.conversation} they go on there."
    )


def format_model_change(before: str, after: str) -> str:
    """Return the note to the model that a person switched models."""
    return (
        f"[Note: the person changed the model of this conversation from {before} to {after}. What "
        "was answered before this message was answered by the other model.]"
    )


def describe_summary_fault(fault: SummaryFault, summary: str, replaced: int) -> str:
    """Return why a summary of ``replaced`` tokens was rejected."""
    match fault:
        case SummaryFault.EMPTY:
            return "the summary is empty"
        case SummaryFault.NO_HEADING:
            return "the summary has none of the required headings"
        case SummaryFault.TOO_LONG:
            size = estimate_tokens(len(summary.encode()))
            return f"the summary is no shorter ({size} tokens) than what it replaces ({replaced})"
        case SummaryFault.TOO_SHORT:
            return f"the summary has only {len(summary.strip())} characters"


def format_unread_file(name: str, read_as: str, why: str) -> str:
    """Return the notice to a person, one of whose files could not be made into text."""
    return (
        f"There is no {read_as} of {name}: {why}. The file is kept, and the conversation goes on; "
        "/retry tries again."
    )


def describe_oversized_file(name: str, size: int, limit: int) -> str:
    """Return why a file cannot be attached."""
    kind = "file" if limit == MAX_FILE_BYTES else "picture"
    return f"{name} has {size:,} bytes; the limit for a {kind} is {limit:,} bytes"
