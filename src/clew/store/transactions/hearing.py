"""What is heard on a channel: judged, deduplicated and stored in one commit."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.core.approval import CLOSED_BUTTON, ApprovalState, format_status, parse_button
from clew.core.chat import DM, OutboundMessage
from clew.core.delivery import DeliveryKind
from clew.core.ids import DeliveryId, InboxId
from clew.core.inbox import AcceptResult, InboxItem, InboxKind, InboxOutcome, NewInput
from clew.core.people import AccessDecision, decide_access, is_operator, may_message
from clew.core.route import Route
from clew.errors import InvalidTransition, NotFound
from clew.store.transactions import approvals, inbox, pairings
from clew.store.transactions.deliveries import tell
from clew.store.transactions.expiry import accept_in_time
from clew.store.transactions.stops import unfinished_turn

if TYPE_CHECKING:
    from clew.core.approval import Approval, NumberedApproval
    from clew.core.ids import ConversationId, OwnerId, SessionIdFactory
    from clew.core.people import AccessPolicy, ChannelAccount
    from clew.core.reset import ResetPolicy
    from clew.store.contract import Tx

#: Commands of the line that a change or a removal on a platform becomes.
EDIT = "edit"
DELETED = "deleted"

NOT_YOURS = "Only whoever asked for it, or an operator, may answer that."
BUSY = "That was not taken: another answer is being made. Send it again when it is there."


@dataclass(frozen=True, kw_only=True, slots=True)
class Who:
    """Who did it, and what the settings say about them."""

    account: ChannelAccount
    user: str
    policy: AccessPolicy
    addressed: bool = True
    #: It is for those only who may talk to the agent alone, not for guests of an open group.
    trusted: bool = False


def judge(t: Tx, who: Who, route: Route) -> AccessDecision:
    """What becomes of what somebody does in a chat; it holds until the commit."""
    standing = pairings.standing(t, who.account, who.user)
    if who.trusted and route.kind != DM and not may_message(who.policy, standing, who.user):
        return AccessDecision.IGNORE
    return decide_access(
        who.policy,
        standing,
        user=who.user,
        kind=route.kind,
        chat=route.chat,
        addressed=who.addressed,
    )


def hear(  # noqa: PLR0913  (each is made by the caller)
    t: Tx,
    item: NewInput,
    *,
    who: Who,
    route: Route,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
    reset: ResetPolicy,
    replaces: tuple[str, str, str] | None = None,
) -> AcceptResult | AccessDecision:
    """
    Store what somebody says, if they may; else what becomes of them.

    Repeating it, or hearing the same event again, stores nothing and returns what the first became.
    ``replaces`` is the event of a message of which this is the new text.
    """
    if before := _before(t, item):
        return before
    found = judge(t, who, route)
    if found is not AccessDecision.ALLOW:
        return found
    accepted = accept_in_time(
        t,
        item,
        target=route,
        new_conversation=new_conversation,
        session_ids=session_ids,
        policy=reset,
    )
    if accepted.outcome is InboxOutcome.REJECTED and not accepted.duplicate:
        _tell(t, accepted, route, OutboundMessage(text=BUSY, markup=False))
    if replaces is not None:
        inbox.repoint(t, replaces, accepted.inbox_id)
    return accepted


def _before(t: Tx, item: NewInput) -> AcceptResult | None:
    return inbox.accepted_before(t, item.id, duplicate=False) or inbox.known_event(t, item)


def _tell(t: Tx, accepted: AcceptResult, route: Route, message: OutboundMessage) -> None:
    tell(
        t,
        accepted.conversation_id,
        route.key,
        message,
        id=DeliveryId(f"dlv_{accepted.inbox_id.removeprefix('inb_')}"),
        kind=DeliveryKind.NOTICE,
    )


def begin_command(
    t: Tx,
    item: NewInput,
    *,
    who: Who,
    route: Route,
    owner: OwnerId,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
) -> AcceptResult | AccessDecision:
    """
    Store that a chat command is being carried out, if whoever wrote it may write here.

    It stands in no line. Its note, the reply, is stored by ``end_command``; one that has none and
    whose owner is dead was cut off.
    """
    if before := _before(t, item):
        return before
    found = judge(t, who, route)
    if found is not AccessDecision.ALLOW:
        return found
    accepted = inbox.accept(
        t, item, target=route, new_conversation=new_conversation, session_ids=session_ids
    )
    t.run(
        "UPDATE inbox SET outcome = $2, resolved_at = $3, payload = $4 WHERE id = $1",
        item.id,
        InboxOutcome.EXECUTED.value,
        t.now,
        json.dumps({**json.loads(item.payload), "owner": owner}),
    )
    return accepted


def end_command(t: Tx, command: InboxId, reply: str) -> bool:
    """Store what a command came to, and have it delivered; ``False`` if that was done before."""
    row = t.one(
        """
        UPDATE inbox SET note = $2 WHERE id = $1 AND kind = 'command' AND note IS NULL
        RETURNING conversation_id, route, payload
        """,
        command,
        reply,
    )
    if row is None:
        return False
    route = Route.parse(row[1])
    answered = json.loads(row[2]).get("message") if route.kind != DM else None
    if reply.strip():
        tell(
            t,
            row[0],
            route.key,
            OutboundMessage(text=reply, markup=False, reply_to=answered),
            id=DeliveryId(f"dlv_{command.removeprefix('inb_')}"),
            kind=DeliveryKind.NOTICE,
        )
    return True


def cut_off(t: Tx) -> list[InboxItem]:
    """Chat commands that a process which died was carrying out."""
    found = t.all(
        """
        SELECT id, payload FROM inbox
        WHERE kind = 'command' AND outcome = 'executed' AND note IS NULL ORDER BY n
        """
    )
    dead = [row[0] for row in found if not t.alive(json.loads(row[1]).get("owner") or "")]
    return [inbox.get_item(t, each) for each in dead]


class Change(enum.Enum):
    """What a change of a message on the platform comes to here."""

    UNKNOWN = "unknown"  #: the message was never heard
    DONE = "done"  #: the message waits, and waits with its new text; or nothing is to be done
    AGAIN = "again"  #: the turn that answers it is unfinished: heard as a new message
    FILED = "filed"  #: decided in the conversation's line


def change(
    t: Tx,
    item: NewInput,
    *,
    original: tuple[str, str, str],
    who: Who | None,
    route: Route,
    text: str | None,
    session_ids: SessionIdFactory,
) -> Change | AccessDecision:
    """
    A message that was heard as event ``original`` has another text now; ``None``: it is gone.

    What waits is changed where it stands. If it is the last one of a turn that is unfinished, its
    new text is to be heard as a message. Everything else is filed as ``item`` and decided in the
    line: the last message is asked again, an older one only noted.
    """
    heard = inbox.input_of(t, original)
    if inbox.known_event(t, item) is not None:
        return Change.DONE
    if heard is None:
        return Change.UNKNOWN
    if who is not None and (found := judge(t, who, route)) is not AccessDecision.ALLOW:
        return found
    return _change(t, item, heard, text, session_ids)


def _change(
    t: Tx, item: NewInput, original: InboxItem, text: str | None, session_ids: SessionIdFactory
) -> Change:
    if original.kind is not InboxKind.MESSAGE or original.text == text:
        return Change.DONE
    if original.outcome is None:
        if text is None:
            inbox.cancel(t, original.id, note="its sender took it back")
        else:
            inbox.edit(t, original.id, text)
        return Change.DONE
    if original.turn_id is None:
        return Change.DONE
    if text is not None and _is_being_answered(t, original):
        return Change.AGAIN
    inbox.accept(
        t,
        item,
        target=original.conversation_id,
        new_conversation=original.conversation_id,
        session_ids=session_ids,
    )
    return Change.FILED


def _is_being_answered(t: Tx, said: InboxItem) -> bool:
    turn = unfinished_turn(t, said.conversation_id)
    if turn is None or turn.id != said.turn_id:
        return False
    return inbox.last_of_turn(t, turn.id) == said.id


@dataclass(frozen=True, kw_only=True, slots=True)
class Press:
    """What came of a button."""

    #: For whoever pressed it.
    text: str
    #: Where something may go on now.
    conversation: ConversationId | None = None
    #: Nobody has anything to press there any more.
    closed: bool = False
    #: What became of the question, for all who look at it later.
    became: str = ""


def press(t: Tx, data: str, *, who: Who, route: Route) -> Press:
    """Answer a question by its button, if whoever pressed it may."""
    if judge(t, who, route) is not AccessDecision.ALLOW:
        return Press(text="You may not answer that.")
    if data == CLOSED_BUTTON:
        return Press(text="That question was answered.")
    if (found := parse_button(data)) is None:
        return Press(text="There is nothing behind that button any more.", closed=True)
    approval, yes = found
    try:
        question = approvals.get_approval(t, approval)
    except NotFound:
        return Press(text="Too late: that question is gone.", closed=True)
    if question.route is None or not _same_chat(Route.parse(question.route), route, who.user):
        return Press(text="That is to be answered where it was asked.")
    if not may_answer(t, question, who, route):
        return Press(text=NOT_YOURS)
    return _pressed(t, question, yes=yes, by=f"{who.account.channel}:{who.user}")


def _pressed(t: Tx, question: Approval, *, yes: bool, by: str) -> Press:
    state = ApprovalState.APPROVED if yes else ApprovalState.DENIED
    try:
        answered = approvals.answer(t, question.id, state, answered_by=by)
    except InvalidTransition:
        after = approvals.get_approval(t, question.id)
        over = after.state is ApprovalState.OPEN
        became = f"Expired: {after.tool}" if over else format_status(after)
        return Press(text=f"Too late. {became}", closed=True, became=became)
    return Press(
        text=format_status(answered),
        conversation=answered.conversation_id,
        closed=True,
        became=format_status(answered),
    )


def may_answer(t: Tx, question: Approval, who: Who, route: Route) -> bool:
    """Whether a question is theirs: the turn answers what they said, or they are an operator."""
    standing = pairings.standing_now(t, who.account, who.user)
    if route.kind == DM or is_operator(who.policy, standing, who.user):
        return True
    said = t.all("SELECT payload FROM inbox WHERE turn_id = $1", question.turn_id)
    return any(pairings.sender_in(row[0], who.account) == who.user for row in said)


def questions(
    t: Tx, conversation: ConversationId, *, who: Who, route: Route
) -> tuple[list[NumberedApproval], int]:
    """The open questions that somebody can answer in a chat, and how many others wait there."""
    shown = approvals.questions(t, conversation, shown_at=route.key)
    theirs = [one for one in shown if may_answer(t, one.approval, who, route)]
    return theirs, len(shown) - len(theirs)


def _same_chat(asked: Route, route: Route, user: str) -> bool:
    """Whether a chat is where something was asked, and of whom."""
    place = (asked.platform, asked.account, asked.chat, asked.thread)
    return place == (route.platform, route.account, route.chat, route.thread) and (
        asked.user in (None, user)
    )
