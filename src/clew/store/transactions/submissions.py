"""Submissions of programs: accepted once per idempotency key, matched by their history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.core import session as reasons
from clew.core.client_history import is_answer
from clew.core.ids import ConversationId, InboxId
from clew.core.inbox import AcceptResult, InboxOutcome
from clew.core.scope import LOCAL
from clew.core.turn import StopRequest, TurnState
from clew.errors import NotFound
from clew.store.transactions.attachments import store_files
from clew.store.transactions.conversations import open_conversation, resolve_conversation
from clew.store.transactions.entries import read_assistant_texts
from clew.store.transactions.expiry import accept_or_reset
from clew.store.transactions.idempotency import bind_key, claim_key
from clew.store.transactions.inbox import (
    accept_input,
    cancel_item,
    find_accepted,
    find_turn_of_item,
    list_open_items,
)
from clew.store.transactions.sessions import get_head
from clew.store.transactions.turn_queries import (
    find_last_done_turn,
    find_unfinished_turn,
    request_stop,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.core.ids import SessionIdFactory
    from clew.core.inbox import NewInput
    from clew.core.reset_policy import ResetPolicy
    from clew.core.route import Route
    from clew.core.session_base import Base
    from clew.core.turn import Turn
    from clew.store.contract import Tx
    from clew.store.transactions.attachments import FetchedFile
    from clew.store.transactions.idempotency import IdempotencyRecord

#: Upper bound of the conversations with the same history that are checked.
_MAX_CANDIDATES = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class IdempotencyKey:
    """A caller's idempotency key, and the hash of its request."""

    key: bytes
    body: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryKey:
    """The history that a client sent with a message, as needed to find its conversation."""

    #: Digest of all earlier user messages, and of the same with the new message.
    before: bytes
    now: bytes
    #: Text of the last answer in it.
    answer: str
    #: The history itself, as the base of a new conversation.
    base: Base


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmitResult:
    """A stored submission, with the answer if its key has one already."""

    accepted: AcceptResult
    status: int | None = None
    answer: str | None = None


def submit_input(  # noqa: PLR0913  (each is a part of the order)
    t: Tx,
    item: NewInput,
    *,
    target: Route | ConversationId,
    key: IdempotencyKey | None,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
    policy: ResetPolicy,
    files: Sequence[FetchedFile] = (),
) -> SubmitResult:
    """
    Accept an input, once per key; an id may be that of any session of a conversation.

    The ``files`` that its payload names are stored with it.

    :raises KeyReused: if the key was used with another request
    :raises NotFound: if the id is unknown; the key stays free
    """

    def accept_with_files() -> AcceptResult:
        accepted = accept_or_reset(
            t,
            item,
            target=resolve_conversation(t, target) if isinstance(target, str) else target,
            new_conversation=new_conversation,
            session_ids=session_ids,
            policy=policy,
        )
        store_files(t, accepted.conversation_id, accepted.inbox_id, files)
        return accepted

    return _submit_once(t, key, accept_with_files)


def submit_with_history(
    t: Tx,
    item: NewInput,
    *,
    resent: HistoryKey,
    key: IdempotencyKey | None,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
) -> SubmitResult:
    """
    Accept an input in the conversation whose context is its history, else in a new one.

    Repeating it with the same inbox id changes nothing.

    :raises KeyReused: if the key was used with another request
    """

    def accept_in_match() -> AcceptResult:
        if before := find_accepted(t, item.id, duplicate=False):
            return before
        conversation = _find_continued(t, resent)
        if conversation is None:
            conversation = new_conversation
            open_conversation(
                t, conversation, scope=LOCAL, session_ids=session_ids, base=resent.base, adhoc=True
            )
        _store_history_key(t, conversation, resent.now, item.id)
        return accept_input(
            t,
            item,
            target=conversation,
            new_conversation=new_conversation,
            session_ids=session_ids,
        )

    return _submit_once(t, key, accept_in_match)


def _submit_once(
    t: Tx, key: IdempotencyKey | None, accept_it: Callable[[], AcceptResult]
) -> SubmitResult:
    if key is None:
        return SubmitResult(accepted=accept_it())
    known, _ = claim_key(t, key.key, body=key.body)
    if known.inbox_id is not None:
        return SubmitResult(
            accepted=_repeated_accept(t, known), status=known.status, answer=known.answer
        )
    new = accept_it()
    bind_key(t, key.key, new.inbox_id, new.conversation_id)
    return SubmitResult(accepted=new)


def _repeated_accept(t: Tx, known: IdempotencyRecord) -> AcceptResult:
    assert known.inbox_id is not None
    assert known.conversation_id is not None
    return find_accepted(t, known.inbox_id, duplicate=True) or AcceptResult(
        inbox_id=known.inbox_id,
        conversation_id=known.conversation_id,
        duplicate=True,
        position=0,
        outcome=InboxOutcome.CANCELLED,
    )


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
    if head.opened_by == reasons.REWIND and head.opened_seq >= turn.first_seq:
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
    if cancel_item(t, inbox_id, note="the caller went away"):
        return True
    turn = find_turn_of_item(t, inbox_id)
    if turn is None or turn.state is TurnState.DONE or _has_other_inputs(t, turn, inbox_id):
        return False
    return request_stop(t, turn.id, StopRequest.CANCEL)


def _has_other_inputs(t: Tx, turn: Turn, inbox_id: InboxId) -> bool:
    return t.exists(
        "SELECT 1 FROM inbox WHERE turn_id = $1 AND id <> $2 LIMIT 1", turn.id, inbox_id
    )
