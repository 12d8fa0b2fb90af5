"""Submissions of programs: accepted once per idempotency key, matched by their history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core import session as reasons
from clew.core.access import AccessDecision
from clew.core.client_history import is_answer
from clew.core.ids import ConversationId, InboxId
from clew.core.inbox import AcceptResult, InboxOutcome
from clew.core.route import Route
from clew.core.scope import LOCAL
from clew.core.system_note import SystemNote
from clew.core.turn import StopRequest, TurnState
from clew.errors import KeyReused, NotFound
from clew.record import Record, replace
from clew.store.transactions.attachments import store_files
from clew.store.transactions.channel_inbox import (
    decide_account_access,
    deliver_busy_notice,
    is_guest,
)
from clew.store.transactions.conversations import (
    open_conversation,
    resolve_conversation,
    resolve_route,
)
from clew.store.transactions.entries import read_assistant_texts
from clew.store.transactions.expiry import leave_expired_conversation
from clew.store.transactions.idempotency import bind_key, claim_key
from clew.store.transactions.inbox import (
    accept_input,
    cancel_item,
    find_accepted,
    find_item,
    find_known_input,
    find_turn_of_item,
    list_open_items,
    relink_event,
)
from clew.store.transactions.message_claims import claim_message
from clew.store.transactions.responses import EarlierInput, find_continuation
from clew.store.transactions.sessions import find_context_change, get_head
from clew.store.transactions.turn_queries import (
    find_last_done_turn,
    find_unfinished_turn,
    request_stop,
)

if TYPE_CHECKING:
    from clew.core.attachments import FetchedFile
    from clew.core.ids import SessionIdFactory
    from clew.core.inbox import IdempotencyKey, NewInput
    from clew.core.reset_policy import ResetPolicy
    from clew.core.session_base import Base
    from clew.core.turn import Turn
    from clew.store.contract import Tx

#: Upper bound of the conversations with the same history that are checked.
_MAX_CANDIDATES = 20


class HistoryKey(Record):
    """The history that a client sent with a message, as needed to find its conversation."""

    #: Digest of all earlier user messages, and of the same with the new message.
    before: bytes
    now: bytes
    #: Text of the last answer in it.
    answer: str
    has_answers: bool
    #: The history itself, as the base of a new conversation.
    base: Base
    #: The files that it names.
    files: tuple[FetchedFile, ...] = ()


def submit_input(
    t: Tx,
    item: NewInput,
    *,
    target: Route | ConversationId | HistoryKey | EarlierInput,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
    policy: ResetPolicy,
) -> AcceptResult | AccessDecision:
    """
    Store an input with its files; return the access decision if its sender has no access.

    The target is a route, which leaves a conversation that has expired; an id, which may be
    that of any session of a conversation; a history, which continues the conversation
    with that context, or else begins a new one with it; or an earlier input, after whose
    answer it continues. Repeating an input, its event,
    its key or its client's message stores nothing and returns the first result.

    :raises KeyReused: if the key was used with another request
    :raises NotFound: if the id is unknown; the key stays free
    """
    if item.key is not None and (first := _find_first_request(t, item.key, target)) is not None:
        return first
    if isinstance(target, str):
        target = resolve_conversation(t, target)
    elif known := find_known_input(t, item):
        return known
    if isinstance(target, (HistoryKey, EarlierInput)):
        target, item = _continue(t, item, target, new_conversation, session_ids)
    elif isinstance(target, Route):
        if item.sender is not None:
            decision = decide_account_access(t, item.sender, target)
            if decision is not AccessDecision.ALLOW:
                return decision
            if is_guest(t, item.sender):
                item = replace(item, untrusted=True)
        item = leave_expired_conversation(
            t,
            item,
            target,
            new_conversation=new_conversation,
            session_ids=session_ids,
            policy=policy,
        )
    if taken := claim_message(
        t, item, target, new_conversation=new_conversation, session_ids=session_ids
    ):
        return taken
    accepted = accept_input(
        t, item, target=target, new_conversation=new_conversation, session_ids=session_ids
    )
    _store_with_input(t, item, accepted, target)
    return accepted


def _continue(
    t: Tx,
    item: NewInput,
    after: HistoryKey | EarlierInput,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
) -> tuple[ConversationId, NewInput]:
    """Return the conversation that continues what was said, and the input as it enters it."""
    if isinstance(after, EarlierInput):
        found = find_continuation(
            t, after, new_conversation=new_conversation, session_ids=session_ids
        )
        return found, item
    found = _open_continued(t, after, item, new_conversation, session_ids)
    if found == new_conversation and after.has_answers:
        # Nobody knows here what the answers that the client sends along have read.
        item = replace(item, untrusted=True)
    return found, item


def _find_first_request(
    t: Tx, key: IdempotencyKey, target: Route | ConversationId | HistoryKey | EarlierInput
) -> AcceptResult | None:
    """Return the result of the first request with a key; claim the key if it is new."""
    known, _ = claim_key(t, key.key, body=key.body)
    if known.inbox_id is None:
        return None
    assert known.conversation_id is not None
    if key.holds_target and not _is_target(t, target, known.inbox_id, known.conversation_id):
        raise KeyReused
    accepted = find_accepted(t, known.inbox_id, duplicate=True) or AcceptResult(
        inbox_id=known.inbox_id,
        conversation_id=known.conversation_id,
        duplicate=True,
        position=0,
        outcome=InboxOutcome.CANCELLED,
    )
    return replace(accepted, answer=known.answer, status=known.status)


def _is_target(
    t: Tx,
    target: Route | ConversationId | HistoryKey | EarlierInput,
    inbox_id: InboxId,
    conversation: ConversationId,
) -> bool:
    """Return whether a target names the conversation of an accepted input, or its route."""
    if isinstance(target, str):
        return resolve_conversation(t, target) == conversation
    if not isinstance(target, Route):
        return False
    if resolve_route(t, target.key) == conversation:
        return True
    # The route may have moved since: then the repetition names it as the first request did.
    item = find_item(t, inbox_id)
    return item is not None and item.route == target.key


def _store_with_input(
    t: Tx, item: NewInput, accepted: AcceptResult, target: Route | ConversationId
) -> None:
    """Store what belongs to the input and is found by it."""
    store_files(t, accepted.conversation_id, accepted.inbox_id, item.files)
    if item.key is not None:
        bind_key(t, item.key.key, accepted.inbox_id, accepted.conversation_id)
    if item.replaces is not None:
        relink_event(t, item.replaces, accepted.inbox_id)
    is_rejected = accepted.outcome is InboxOutcome.REJECTED and not accepted.duplicate
    if is_rejected and item.sender is not None and isinstance(target, Route):
        deliver_busy_notice(t, accepted, target)


def _open_continued(
    t: Tx,
    history: HistoryKey,
    item: NewInput,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
) -> ConversationId:
    """Return the conversation whose context is a history, else a new one that begins with it."""
    conversation = _find_continued(t, history)
    if conversation is None:
        conversation = new_conversation
        open_conversation(
            t, conversation, scope=LOCAL, session_ids=session_ids, base=history.base, adhoc=True
        )
        store_files(t, conversation, None, history.files)
    _store_history_key(t, conversation, history.now, item.id)
    return conversation


def _find_continued(t: Tx, resent: HistoryKey) -> ConversationId | None:
    """Return the conversation whose context is this history, locked until the commit."""
    found = t.fetch_all(
        """
        SELECT conversation_id, inbox_id FROM resent WHERE key = $1
        ORDER BY inbox_id DESC LIMIT $2 @LOCK
        """,
        resent.before,
        _MAX_CANDIDATES,
    )
    for conversation, inbox_id in found:
        if _is_latest_answer(t, ConversationId(conversation), InboxId(inbox_id), resent.answer):
            return ConversationId(conversation)
    return None


def _is_latest_answer(t: Tx, conversation: ConversationId, inbox_id: InboxId, answer: str) -> bool:
    """Return whether this answer to that input is the last thing in the conversation."""
    turn = find_turn_of_item(t, inbox_id)
    if turn is None or turn != find_last_done_turn(t, conversation):
        return False
    if find_unfinished_turn(t, conversation) is not None or list_open_items(t, conversation):
        return False
    try:
        head = get_head(t, conversation)
    except NotFound:
        return False
    opened = find_context_change(t, head)
    if opened.opened_by == reasons.REWIND and opened.opened_seq >= turn.first_seq:
        return False
    return is_answer(answer, read_assistant_texts(t, turn))


def _store_history_key(t: Tx, conversation: ConversationId, key: bytes, inbox_id: InboxId) -> None:
    t.execute(
        """
        INSERT INTO resent (conversation_id, key, inbox_id) VALUES ($1, $2, $3)
        ON CONFLICT (conversation_id) DO UPDATE SET key = excluded.key, inbox_id = excluded.inbox_id
        """,
        conversation,
        key,
        inbox_id,
    )


def cancel_submission(t: Tx, inbox_id: InboxId) -> bool:
    """
    Cancel an input whose caller disconnected, or ask its turn to stop.

    ``False`` if it has ended, or if its turn has other inputs too.
    """
    if cancel_item(t, inbox_id, note=SystemNote.CALLER_LEFT.value):
        return True
    turn = find_turn_of_item(t, inbox_id)
    if turn is None or turn.state is TurnState.DONE or _has_other_inputs(t, turn, inbox_id):
        return False
    return request_stop(t, turn.id, StopRequest.CANCEL)


def _has_other_inputs(t: Tx, turn: Turn, inbox_id: InboxId) -> bool:
    return t.exists(
        "SELECT 1 FROM inbox WHERE turn_id = $1 AND id <> $2 LIMIT 1", turn.id, inbox_id
    )
