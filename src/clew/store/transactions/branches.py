"""Alternative continuations: a branch, an undone compaction, an undone exchange."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from clew.core import session as reasons
from clew.core.entry import CAUSED_PATTERN
from clew.core.session import Head
from clew.core.session_base import InlineMessage, extend_base
from clew.errors import UsageError
from clew.record import Record
from clew.store.transactions import attachments, leases
from clew.store.transactions.context import build_base_at, expand_base, read_head_context
from clew.store.transactions.conversations import get_conversation, open_conversation
from clew.store.transactions.redactions import apply_queued_redactions
from clew.store.transactions.rewinds import find_boundary, raise_if_unknown_entry
from clew.store.transactions.sessions import (
    find_context_change,
    find_session_by_operation,
    get_base,
    get_head,
    get_session,
    rotate_session,
)
from clew.store.transactions.settings import copy_lasting_settings

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, SessionId, SessionIdFactory, TurnId
    from clew.core.lease import Lease
    from clew.core.session import Session
    from clew.store.contract import Tx


def branch_conversation(
    t: Tx,
    source: ConversationId,
    *,
    new_conversation: ConversationId,
    session_ids: SessionIdFactory,
    at: int | None = None,
) -> SessionId:
    """
    Open a conversation from the context of another, and return its first session.

    The context is copied as literals; the branch has the model and the profile of its source.

    ``at`` is the entry of the source to branch after, moved back to the last boundary.
    Repeating it with the same ``new_conversation`` changes nothing.

    :raises NotFound: if there is no such conversation
    :raises UsageError: if it has no such entry
    """
    found = get_conversation(t, source)
    apply_queued_redactions(t, source)
    if at is not None:
        raise_if_unknown_entry(at, last_seq=found.last_seq)
    seq = find_boundary(t, source, found.last_seq if at is None else at)
    if at is None and seq == found.last_seq:
        messages = read_head_context(t, source).messages
    else:
        messages = expand_base(t, source, build_base_at(t, source, seq))
    opened = open_conversation(
        t,
        new_conversation,
        scope=found.scope,
        session_ids=session_ids,
        base=tuple(InlineMessage(format=item.format, message=item.message) for item in messages),
        opened_by=reasons.BRANCH,
        origin=source,
        origin_seq=seq,
    )
    attachments.copy_attachments(t, source, new_conversation, [item.message for item in messages])
    copy_lasting_settings(t, source, new_conversation)
    return opened


def undo_compaction(
    t: Tx, lease: Lease, *, operation: str, session_ids: SessionIdFactory
) -> Session:
    """
    Undo the compaction that opened the head, or the session before something was forgotten.

    The new context is the predecessor's plus everything appended since.

    Repeating it with the same ``operation`` returns the same session.

    :raises LeaseLost: if the lease is not held any more
    :raises UsageError: if the head was not opened by a compaction
    """
    if (done := find_session_by_operation(t, operation)) is not None:
        return done
    last_seq = leases.verify_lease_for_write(t, lease)
    head = get_head(t, lease.conversation_id)
    opened = find_context_change(t, head)
    if opened.opened_by != reasons.COMPRESSION or opened.predecessor is None:
        raise UsageError("there is no compaction to undo: this session was not opened by one")
    before = get_session(t, opened.predecessor)
    return rotate_session(
        t,
        lease,
        operation=operation,
        expected=Head(session=head.id, last_seq=last_seq),
        base=extend_base(get_base(t, before.id), opened_seq=before.opened_seq, last_seq=last_seq),
        reason=reasons.RESTORE,
        session_ids=session_ids,
    )


class Exchange(Record):
    """Messages of a person that began one turn, and everything up to the next one."""

    #: Seq of its first message.
    first: int
    turn: TurnId | None
    #: Text of the messages.
    text: str
    #: No person wrote them: the turn was begun by completions alone.
    caused: bool = False


class _UserMessage(NamedTuple):
    seq: int
    turn: TurnId | None
    text: str
    caused: bool


def find_recent_exchange(t: Tx, conversation: ConversationId, *, back: int = 1) -> Exchange:
    """
    Return the ``back``-th last exchange in the context.

    Messages that began one turn are one exchange.

    :raises UsageError: if there are not so many
    """
    in_context = {message.seq for message in read_head_context(t, conversation).messages}
    copied = None in in_context
    found = t.fetch_all(
        """
        SELECT e.seq, e.turn_id, COALESCE(r.text, e.text),
            CASE WHEN e.message LIKE $2 THEN 1 ELSE 0 END
        FROM entry e
        LEFT JOIN entry_redaction r ON r.conversation_id = e.conversation_id AND r.seq = e.seq
        WHERE e.conversation_id = $1 AND e.kind = 'message' AND e.role = 'user' ORDER BY e.seq
        """,
        conversation,
        CAUSED_PATTERN,
    )
    said = [message for row in found if (message := _UserMessage(*row)).seq in in_context]
    exchanges = [list(each) for _, each in groupby(said, key=_exchange_key)]
    if not 1 <= back <= len(exchanges):
        raise UsageError(_too_far_message(len(exchanges), copied=copied))
    # The completions that came with a person's message stay when it is taken back.
    written = [message for message in exchanges[-back] if not message.caused]
    messages = written or exchanges[-back]
    return Exchange(
        first=messages[0].seq,
        turn=messages[0].turn,
        text="\n\n".join(message.text for message in messages),
        caused=not written,
    )


def _exchange_key(message: _UserMessage) -> TurnId | int:
    return message.turn or message.seq


def _too_far_message(said: int, *, copied: bool) -> str:
    messages = "1 message" if said == 1 else f"{said} messages"
    if copied:
        return (
            f"that is too far back: the context has {messages} of yours since the copy or summary "
            "at its start, and nothing before that can be undone"
        )
    return f"that is too far back: the context has {messages} of yours"
