"""Approvals: tool calls that wait for a person's decision."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING

from clew.core.call_document import (
    MAX_DOCUMENT_CHARS,
    MAX_IN_MESSAGES,
    make_document,
    make_excerpt,
)
from clew.core.channel_events import Button, OutboundMessage
from clew.core.grant import GrantTerm
from clew.core.ids import ApprovalId
from clew.record import Record

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.call_terms import CallTerms
    from clew.core.grant import GrantPattern
    from clew.core.ids import ConversationId, TurnId
    from clew.core.route import RouteKey


class ApprovalState(enum.Enum):
    OPEN = "open"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"


TRANSITIONS = {
    ApprovalState.OPEN: frozenset(
        {ApprovalState.APPROVED, ApprovalState.DENIED, ApprovalState.EXPIRED}
    ),
    ApprovalState.APPROVED: frozenset[ApprovalState](),
    ApprovalState.DENIED: frozenset[ApprovalState](),
    ApprovalState.EXPIRED: frozenset[ApprovalState](),
}


class Approval(Record):
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
    #: As the model wrote ``args``, if a plugin has changed them.
    requested: str | None = None
    #: The reason for the question.
    why: str | None = None
    #: The pattern that may be allowed for longer than this call; ``None`` if there is none.
    offer: GrantPattern | None = None
    #: Shown with the arguments, such as the diff of a write.
    preview: str | None = None
    #: The result of the call will hold text that strangers may have written.
    untrusted: bool = False
    #: What the call would reach when it was asked about; ``None`` if an earlier version asked.
    terms: CallTerms | None = None


class ApprovalReason(Record):
    """The reason why a call needs approval, and the pattern offered with the question."""

    why: str
    offer: GrantPattern | None = None
    preview: str | None = None
    untrusted: bool = False
    terms: CallTerms | None = None


_APPROVE, _DENY, _DENY_WITH_REASON = "yes", "no", "why"
#: Words of buttons that allow a call for longer.
_KEEPS = {term.value: term for term in GrantTerm}
#: Data of a button that only shows the status of an answered approval.
CLOSED_BUTTON = "closed"
#: Invisible characters, and characters that reorder others.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


class NumberedApproval(Record):
    """Open approval, with its number among all approvals of its turn."""

    #: From 1; it stays the same when others are answered.
    number: int
    approval: Approval
    #: It was shown before the message that is to answer it was written.
    was_seen: bool = True


def fits_in_chat(approval: Approval) -> bool:
    """Return whether a chat can show all of the arguments, in messages or in a file."""
    return len(escape_invisible(approval.args)) <= MAX_DOCUMENT_CHARS


def format_question(approval: Approval, *, number: int = 1) -> OutboundMessage:
    """Return the approval request for a chat: the whole call, to the letter."""
    otherwise = (
        f"The agent wants to run **{approval.tool}** with {len(approval.args):,} "
        "characters of arguments, which is too long to be shown here. Whoever has a terminal "
        f"on its machine can look and answer: `clew chat -c {approval.conversation_id}`"
    )
    if not fits_in_chat(approval):
        return OutboundMessage(text=otherwise)
    which = "" if number == 1 else f" {number}"
    args, preview = escape_invisible(approval.args), escape_invisible(approval.preview or "")
    if len(args) + len(preview) > MAX_DOCUMENT_CHARS:
        preview = ""
    if len(args) + len(preview) <= MAX_IN_MESSAGES:
        document, shown = None, _show_call(approval.tool, args, preview)
    else:
        name = f"call-{number}.txt"
        document = make_document(
            name, tool=approval.tool, args=args, preview=preview, otherwise=otherwise
        )
        shown = _show_excerpt(approval.tool, len(args), preview, name)
    return OutboundMessage(
        text="\n\n".join([*shown, *_describe_terms(approval, which)]),
        buttons=tuple(_make_buttons(approval)),
        document=document,
    )


def _show_call(tool: str, args: str, preview: str) -> list[str]:
    said = [f"The agent wants to run **{tool}** with", _fence(args, "json")]
    return [*said, _fence(preview, "diff")] if preview else said


def _show_excerpt(tool: str, size: int, preview: str, name: str) -> list[str]:
    """Return the begin of a call that a file shows."""
    said = (
        f"The agent wants to run **{tool}** with {size:,} characters of arguments. The file "
        f"{name}, sent before this message, shows all of it, to the letter."
    )
    if not preview:
        return [said]
    begin, more = make_excerpt(preview)
    left = [] if more == 0 else [f"… and {more:,} more lines, which are in the file."]
    return [said, *([_fence(begin, "diff")] if begin else []), *left]


def _describe_terms(approval: Approval, which: str) -> list[str]:
    """Return why it is asked and what may be allowed, to the letter, and how to answer."""
    facts = [
        *([] if approval.why is None else [f"asked because {approval.why}"]),
        *([] if approval.offer is None else [f"for an hour or always: {approval.offer.says}"]),
    ]
    shown = [_fence(escape_invisible("\n".join(facts)), "text")] if facts else []
    once = (
        f"/approve{which} allows it, /deny{which} refuses it; a reason after /deny{which} is "
        "told to the agent."
    )
    if approval.offer is None:
        return [*shown, once]
    longer = (
        f"/approve{which} hour and /approve{which} always allow what the line above says: for an "
        "hour in this conversation, or always here."
    )
    return [*shown, f"{once} {longer}"]


def _make_buttons(approval: Approval) -> list[Button]:
    longer = [
        Button(label="For an hour", data=f"{GrantTerm.HOUR.value}:{approval.id}"),
        Button(label="Always", data=f"{GrantTerm.ALWAYS.value}:{approval.id}"),
    ]
    return [
        Button(label="Allow", data=f"{_APPROVE}:{approval.id}"),
        *(longer if approval.offer is not None else ()),
        Button(label="Refuse", data=f"{_DENY}:{approval.id}"),
        Button(label="Refuse, because …", data=f"{_DENY_WITH_REASON}:{approval.id}"),
    ]


def _fence(text: str, language: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def escape_invisible(args: str) -> str:
    """Return equivalent arguments, with a JSON escape for each invisible character."""
    return _INVISIBLE.sub(_escape_match, args)


def _escape_match(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[n : n + 2].hex()}" for n in range(0, len(units), 2))


class ButtonAnswer(Record):
    """The answer that a button stands for."""

    approval: ApprovalId
    yes: bool
    keep: GrantTerm | None = None
    #: The reason is to be asked for first; nothing is answered yet.
    needs_reason: bool = False


def parse_button(data: str) -> ButtonAnswer | None:
    """Return the answer that a button stands for; ``None`` for other buttons."""
    word, _, approval = data.partition(":")
    if word not in (_APPROVE, _DENY, _DENY_WITH_REASON, *_KEEPS):
        return None
    return ButtonAnswer(
        approval=ApprovalId(approval),
        yes=word not in (_DENY, _DENY_WITH_REASON),
        keep=_KEEPS.get(word),
        needs_reason=word == _DENY_WITH_REASON,
    )
