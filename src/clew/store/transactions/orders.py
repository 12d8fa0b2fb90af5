"""Orders: inputs of programs, once per key, in the conversation that their history means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.core import session as reasons
from clew.core.history import is_answer
from clew.core.ids import ConversationId, InboxId
from clew.core.inbox import AcceptResult, InboxOutcome
from clew.core.scope import LOCAL
from clew.core.turn import StopRequest, TurnState
from clew.errors import NotFound
from clew.store.transactions.conversations import open_conversation, resolve
from clew.store.transactions.entries import texts_of_turn
from clew.store.transactions.expiry import accept_in_time
from clew.store.transactions.files import keep
from clew.store.transactions.idempotency import bind_key, claim_key
from clew.store.transactions.inbox import accept, accepted_before, cancel, line, turn_of
from clew.store.transactions.sessions import get_head
from clew.store.transactions.stops import last_done_turn, request_stop, unfinished_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.core.base import Base
    from clew.core.ids import SessionIdFactory
    from clew.core.inbox import NewInput
    from clew.core.reset import ResetPolicy
    from clew.core.route import Route
    from clew.core.turn import Turn
    from clew.store.contract import Tx
    from clew.store.transactions.files import Fetched
    from clew.store.transactions.idempotency import Answered

#: Conversations that were asked the same: more are not looked at.
_CANDIDATES = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """A caller's idempotency key, and the hash of the request that it stands for."""

    key: bytes
    body: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Resent:
    """A history that came with a message, as far as it matters here."""

    #: The digest of all that was asked before, and of the same with the new message.
    before: bytes
    now: bytes
    #: The words of the answer that the client had to it.
    answer: str
    #: The history itself, for a conversation of its own.
    base: Base


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """An order that is stored; with what it was answered, if its key had an answer already."""

    accepted: AcceptResult
    status: int | None = None
    answer: str | None = None


def place(  # noqa: PLR0913  (each is a part of the order)
    t: Tx,
    item: NewInput,
    *,
    target: Route | ConversationId,
    key: Key | None,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
    policy: ResetPolicy,
    files: Sequence[Fetched] = (),
) -> Placed:
    """
    Accept an input, once per key; an id may be that of any session of a conversation.

    The ``files`` that its payload names are kept with it.

    :raises KeyReused: if the key came with another request before
    :raises NotFound: if the id is one of nothing; the key stays free
    """

    def accept_with_files() -> AcceptResult:
        accepted = accept_in_time(
            t,
            item,
            target=resolve(t, target) if isinstance(target, str) else target,
            new_conversation=new_conversation,
            session_ids=session_ids,
            policy=policy,
        )
        keep(t, accepted.conversation_id, accepted.inbox_id, files)
        return accepted

    return _once(t, key, accept_with_files)


def place_resent(
    t: Tx,
    item: NewInput,
    *,
    resent: Resent,
    key: Key | None,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
) -> Placed:
    """
    Accept an input in the conversation whose context its history is, else in a new one.

    Repeating it with the same inbox id changes nothing.

    :raises KeyReused: if the key came with another request before
    """

    def accept_there() -> AcceptResult:
        if before := accepted_before(t, item.id, duplicate=False):
            return before
        conversation = _continued(t, resent)
        if conversation is None:
            conversation = new_conversation
            open_conversation(
                t, conversation, scope=LOCAL, session_ids=session_ids, base=resent.base, adhoc=True
            )
        _remember(t, conversation, resent.now, item.id)
        return accept(
            t,
            item,
            target=conversation,
            new_conversation=new_conversation,
            session_ids=session_ids,
        )

    return _once(t, key, accept_there)


def _once(t: Tx, key: Key | None, accept_it: Callable[[], AcceptResult]) -> Placed:
    if key is None:
        return Placed(accepted=accept_it())
    known, _ = claim_key(t, key.key, body=key.body)
    if known.inbox_id is not None:
        return Placed(accepted=_again(t, known), status=known.status, answer=known.answer)
    new = accept_it()
    bind_key(t, key.key, new.inbox_id, new.conversation_id)
    return Placed(accepted=new)


def _again(t: Tx, known: Answered) -> AcceptResult:
    assert known.inbox_id is not None
    assert known.conversation_id is not None
    return accepted_before(t, known.inbox_id, duplicate=True) or AcceptResult(
        inbox_id=known.inbox_id,
        conversation_id=known.conversation_id,
        duplicate=True,
        position=0,
        outcome=InboxOutcome.CANCELLED,
    )


def _continued(t: Tx, resent: Resent) -> ConversationId | None:
    """The conversation that this history is the context of, kept from others until the commit."""
    found = t.all(
        """
        SELECT conversation_id, inbox_id FROM resent WHERE key = $1
        ORDER BY inbox_id DESC LIMIT $2 @LOCK
        """,
        resent.before,
        _CANDIDATES,
    )
    for conversation, inbox_id in found:
        if _stands(t, ConversationId(conversation), InboxId(inbox_id), resent.answer):
            return ConversationId(conversation)
    return None


def _stands(t: Tx, conversation: ConversationId, inbox_id: InboxId, answer: str) -> bool:
    """Whether nothing was said since that input but this answer to it."""
    turn = turn_of(t, inbox_id)
    if turn is None or turn != last_done_turn(t, conversation):
        return False
    if unfinished_turn(t, conversation) is not None or line(t, conversation):
        return False
    try:
        head = get_head(t, conversation)
    except NotFound:
        return False
    if head.opened_by == reasons.REWIND and head.opened_seq >= turn.first_seq:
        return False
    return is_answer(answer, texts_of_turn(t, turn))


def _remember(t: Tx, conversation: ConversationId, key: bytes, inbox_id: InboxId) -> None:
    t.run(
        """
        INSERT INTO resent (conversation_id, key, inbox_id) VALUES ($1, $2, $3)
        ON CONFLICT (conversation_id) DO UPDATE SET key = excluded.key, inbox_id = excluded.inbox_id
        """,
        conversation,
        key,
        inbox_id,
    )


def abandon(t: Tx, inbox_id: InboxId) -> bool:
    """
    The caller who waited for an input went away: take it back, or ask its turn to stop.

    ``False`` if it has ended, or if others joined its turn and wait for it too.
    """
    if cancel(t, inbox_id, note="the caller went away"):
        return True
    turn = turn_of(t, inbox_id)
    if turn is None or turn.state is TurnState.DONE or _is_shared(t, turn, inbox_id):
        return False
    return request_stop(t, turn.id, StopRequest.CANCEL)


def _is_shared(t: Tx, turn: Turn, inbox_id: InboxId) -> bool:
    return (
        t.one("SELECT 1 FROM inbox WHERE turn_id = $1 AND id <> $2 LIMIT 1", turn.id, inbox_id)
        is not None
    )
