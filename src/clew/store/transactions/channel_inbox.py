"""Channel input besides messages: commands, changes of messages and answers, with access."""

from __future__ import annotations

import enum
import json
from typing import TYPE_CHECKING

from clew.core.access import AccessDecision, ButtonOutcome, decide_access, is_operator, may_message
from clew.core.approval import CLOSED_BUTTON, ApprovalState, parse_button
from clew.core.channel_events import DM, ChatNotice, OutboundMessage
from clew.core.delivery import DeliveryKind
from clew.core.ids import DeliveryId, InboxId
from clew.core.inbox import AcceptResult, InboxItem, InboxKind, InboxOutcome, NewInput
from clew.core.route import Route
from clew.core.system_note import SystemNote
from clew.errors import InvalidTransition, NotFound
from clew.record import Record
from clew.store.transactions import approvals, inbox, pairings
from clew.store.transactions.deliveries import deliver_to_chat
from clew.store.transactions.turn_queries import find_unfinished_turn

if TYPE_CHECKING:
    from clew.core.access import ChannelActor
    from clew.core.approval import Approval, ButtonAnswer, NumberedApproval
    from clew.core.ids import ConversationId, OwnerId, SessionIdFactory
    from clew.core.message_order import WrittenMessage
    from clew.store.contract import Tx

#: Queued commands for a message that was edited or deleted on the platform.
EDIT_COMMAND = "edit"
DELETED_COMMAND = "deleted"


def decide_account_access(t: Tx, who: ChannelActor, route: Route) -> AccessDecision:
    """Return the access decision for a user in a chat; it holds until the commit."""
    standing = pairings.lock_access_status(t, who.account, who.user)
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


def is_guest(t: Tx, who: ChannelActor) -> bool:
    """Return whether a user may write in an open group only: nobody has let them in."""
    standing = pairings.get_access_status(t, who.account, who.user)
    return not may_message(who.policy, standing, who.user)


def deliver_busy_notice(t: Tx, accepted: AcceptResult, route: Route) -> None:
    """Tell a chat that its message was rejected because of an unfinished turn."""
    deliver_to_chat(
        t,
        accepted.conversation_id,
        route.key,
        OutboundMessage(notice=ChatNotice.BUSY, markup=False),
        id=DeliveryId(f"dlv_{accepted.inbox_id.removeprefix('inb_')}"),
        kind=DeliveryKind.NOTICE,
    )


def begin_command(
    t: Tx,
    item: NewInput,
    *,
    who: ChannelActor,
    route: Route,
    owner: OwnerId,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
) -> AcceptResult | AccessDecision:
    """
    Store that a chat command is being executed, if its sender has access here.

    It bypasses the queue. ``end_command`` stores its note, the reply; a command without a
    note whose owner is dead was interrupted.
    """
    if before := inbox.find_known_input(t, item):
        return before
    found = decide_account_access(t, who, route)
    if found is not AccessDecision.ALLOW:
        return found
    accepted = inbox.accept_input(
        t, item, target=route, new_conversation=new_conversation, session_ids=session_ids
    )
    t.execute(
        "UPDATE inbox SET outcome = $2, resolved_at = $3, payload = $4 WHERE id = $1",
        item.id,
        InboxOutcome.EXECUTED.value,
        t.now,
        json.dumps({**json.loads(item.payload), "owner": owner}),
    )
    return accepted


def end_command(t: Tx, command: InboxId, reply: str) -> bool:
    """Store and deliver a command's reply; ``False`` if that was done before."""
    row = t.fetch_one(
        """
        UPDATE inbox SET note = $2 WHERE id = $1 AND kind = 'command' AND note IS NULL
        RETURNING conversation_id, route, payload
        """,
        command,
        reply,
    )
    if row is None:
        return False
    conversation, key, payload = row
    route = Route.parse(key)
    answered = json.loads(payload).get("message") if route.kind != DM else None
    if reply.strip():
        deliver_to_chat(
            t,
            conversation,
            route.key,
            OutboundMessage(text=reply, markup=False, reply_to=answered),
            id=DeliveryId(f"dlv_{command.removeprefix('inb_')}"),
            kind=DeliveryKind.NOTICE,
        )
    return True


def list_interrupted_commands(t: Tx) -> list[InboxItem]:
    """Return the chat commands that a dead process was executing."""
    found = t.fetch_all(
        """
        SELECT id, payload FROM inbox
        WHERE kind = 'command' AND outcome = 'executed' AND note IS NULL ORDER BY n
        """
    )
    dead = [
        command
        for command, payload in found
        if not t.is_alive(json.loads(payload).get("owner") or "")
    ]
    return [inbox.get_item(t, each) for each in dead]


class ChangeOutcome(enum.Enum):
    """Outcome of a message edit or deletion on the platform."""

    UNKNOWN = "unknown"  #: the message was never received
    DONE = "done"  #: applied to the queued message, or nothing to do
    RESUBMIT = "again"  #: its turn is unfinished: send the text as a new message
    QUEUED = "filed"  #: queued as a command of the conversation


def apply_message_change(
    t: Tx,
    item: NewInput,
    *,
    original: tuple[str, str, str],
    who: ChannelActor | None,
    route: Route,
    text: str | None,
    session_ids: SessionIdFactory,
) -> ChangeOutcome | AccessDecision:
    """
    Apply a new text to the message received as event ``original``; ``None`` means deleted.

    A queued message is changed in place. If it is the last one of an unfinished turn, the
    caller has to send the new text as a message. Everything else is queued as ``item``:
    there, the last message is answered again, and a change of an older one is only noted.
    """
    heard = inbox.find_input_of_event(t, original)
    if inbox.find_accepted_event(t, item) is not None:
        return ChangeOutcome.DONE
    if heard is None:
        return ChangeOutcome.UNKNOWN
    if (
        who is not None
        and (found := decide_account_access(t, who, route)) is not AccessDecision.ALLOW
    ):
        return found
    return _apply_change(t, item, heard, text, session_ids)


def _apply_change(
    t: Tx, item: NewInput, original: InboxItem, text: str | None, session_ids: SessionIdFactory
) -> ChangeOutcome:
    if original.kind is not InboxKind.MESSAGE or original.text == text:
        return ChangeOutcome.DONE
    if original.outcome is None:
        if text is None:
            inbox.cancel_item(t, original.id, note=SystemNote.MESSAGE_DELETED.value)
        else:
            inbox.edit_message(t, original.id, text, untrusted=item.untrusted)
        return ChangeOutcome.DONE
    if original.turn_id is None:
        return ChangeOutcome.DONE
    if text is not None and _is_being_answered(t, original):
        return ChangeOutcome.RESUBMIT
    inbox.accept_input(
        t,
        item,
        target=original.conversation_id,
        new_conversation=original.conversation_id,
        session_ids=session_ids,
    )
    return ChangeOutcome.QUEUED


def _is_being_answered(t: Tx, said: InboxItem) -> bool:
    turn = find_unfinished_turn(t, said.conversation_id)
    if turn is None or turn.id != said.turn_id:
        return False
    return inbox.find_last_input(t, turn.id) == said.id


class ButtonResult(Record):
    """Result of a button press."""

    outcome: ButtonOutcome
    #: The approval, and its state now.
    approval: Approval | None = None
    state: ApprovalState | None = None

    @property
    def closed(self) -> bool:
        """Return whether the buttons are of no more use."""
        return self.approval is not None or self.outcome in _USELESS_BUTTONS


_USELESS_BUTTONS = frozenset({ButtonOutcome.UNKNOWN, ButtonOutcome.GONE})


def answer_button(t: Tx, data: str, *, who: ChannelActor, route: Route) -> ButtonResult:
    """Answer an approval by its button, if the user is allowed to."""
    if decide_account_access(t, who, route) is not AccessDecision.ALLOW:
        return ButtonResult(outcome=ButtonOutcome.NO_ACCESS)
    if data == CLOSED_BUTTON:
        return ButtonResult(outcome=ButtonOutcome.ANSWERED_BEFORE)
    if (found := parse_button(data)) is None:
        return ButtonResult(outcome=ButtonOutcome.UNKNOWN)
    try:
        question = approvals.get_approval(t, found.approval)
    except NotFound:
        return ButtonResult(outcome=ButtonOutcome.GONE)
    if question.route is None or not _is_same_chat(Route.parse(question.route), route, who.user):
        return ButtonResult(outcome=ButtonOutcome.WRONG_CHAT)
    if not may_answer(t, question, who, route):
        return ButtonResult(outcome=ButtonOutcome.NOT_ALLOWED)
    if found.needs_reason and question.state is ApprovalState.OPEN:
        _ask_reason(t, question)
        return ButtonResult(outcome=ButtonOutcome.REASON_ASKED)
    return _record_button_answer(t, question, found, by=f"{who.account.channel}:{who.user}")


def _ask_reason(t: Tx, question: Approval) -> None:
    """Tell the chat, once, how to refuse with a reason: no text that is typed does it alone."""
    number = str(approvals.get_approval_number(t, question))
    deliver_to_chat(
        t,
        question.conversation_id,
        question.route,
        OutboundMessage(notice=ChatNotice.REASON, details=(number, question.tool), markup=False),
        id=DeliveryId(f"dlv_{question.id.removeprefix('apr_')}.reason"),
        kind=DeliveryKind.NOTICE,
        turn=question.turn_id,
    )


def _record_button_answer(
    t: Tx, question: Approval, answer: ButtonAnswer, *, by: str
) -> ButtonResult:
    state = ApprovalState.APPROVED if answer.yes else ApprovalState.DENIED
    try:
        answered = approvals.answer_approval(
            t, question.id, state, answered_by=by, keep=answer.keep
        )
    except NotFound:
        # Nothing was offered for longer: such a button was never shown.
        return ButtonResult(outcome=ButtonOutcome.UNKNOWN)
    except InvalidTransition:
        after = approvals.get_approval(t, question.id)
        # Past its expiry, but not marked so yet.
        expired = after.state is ApprovalState.OPEN
        return ButtonResult(
            outcome=ButtonOutcome.TOO_LATE,
            approval=after,
            state=ApprovalState.EXPIRED if expired else after.state,
        )
    return ButtonResult(outcome=ButtonOutcome.RECORDED, approval=answered, state=answered.state)


def may_answer(t: Tx, question: Approval, who: ChannelActor, route: Route) -> bool:
    """
    Return whether a user may answer: in a direct message its person, in a group only operators.

    Where the settings say so, those whose messages began the turn may in a group as well.
    """
    standing = pairings.get_access_status(t, who.account, who.user)
    if is_operator(who.policy, standing, who.user):
        return True
    if route.kind != DM and not who.policy.people_answer:
        return False
    said = inbox.read_payloads(t, question.turn_id)
    senders = {pairings.find_sender(payload, who.account) for payload in said} - {None}
    # In a direct message, what a program began asks whoever the chat is with.
    return who.user in senders or (route.kind == DM and not senders)


def list_answerable_questions(
    t: Tx,
    conversation: ConversationId,
    *,
    who: ChannelActor,
    route: Route,
    written: WrittenMessage | None,
) -> tuple[list[NumberedApproval], int]:
    """Return the open approvals a user may answer in a chat, and how many others are open."""
    shown = approvals.list_questions(t, conversation, shown_at=route.key, written=written)
    theirs = [one for one in shown if may_answer(t, one.approval, who, route)]
    return theirs, len(shown) - len(theirs)


def _is_same_chat(asked: Route, route: Route, user: str) -> bool:
    """Return whether a chat is where the approval was requested, and of this user."""
    place = (asked.platform, asked.account, asked.chat, asked.thread)
    return place == (route.platform, route.account, route.chat, route.thread) and (
        asked.user in (None, user)
    )
