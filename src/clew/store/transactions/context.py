"""Context of a model request, read from the head session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.entry import EntryKind
from clew.core.session import REWIND
from clew.core.session_base import Base, EntryRange, extend_base, merge_ranges
from clew.errors import NotFound
from clew.record import Record
from clew.store.transactions.sessions import get_base, get_head, get_session

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, SessionId
    from clew.core.session import Session
    from clew.store.contract import Row, Tx


class ContextMessage(Record):
    """One message of a context, as stored."""

    #: Its number in the log; ``None`` for a literal of the base.
    seq: int | None
    format: str
    message: str


class Context(Record):
    """A session and its messages: the base, then those appended since it opened."""

    session: Session
    #: Last seq of the log when this was read.
    last_seq: int
    messages: tuple[ContextMessage, ...]


class ContextPosition(Record):
    """Point up to which a reader has a session's context."""

    session_id: SessionId
    seq: int
    #: Id of entry ``seq``, which proves that it is the same log; ``None`` for seq 0.
    entry_id: str | None


class ContextUpdate(Record):
    """The whole context, or only the messages after the reader's position."""

    context: Context
    position: ContextPosition
    #: True if the context has only the messages after the reader's position.
    partial: bool


def read_context_update(
    t: Tx, conversation: ConversationId, known: ContextPosition | None
) -> ContextUpdate:
    """
    Return the context of the current session, without the part that the reader validly has.

    :raises NotFound: if there is no such conversation
    """
    session = get_head(t, conversation)
    last_seq = _read_last_seq(t, conversation)
    position = ContextPosition(
        session_id=session.id, seq=last_seq, entry_id=_find_entry_id(t, conversation, last_seq)
    )
    if known is None or not _is_still_valid(t, conversation, session, known):
        return ContextUpdate(
            context=read_head_context(t, conversation), position=position, partial=False
        )
    messages = read_messages(t, conversation, first=known.seq + 1, last=last_seq)
    context = Context(session=session, last_seq=last_seq, messages=tuple(messages))
    return ContextUpdate(context=context, position=position, partial=True)


def _is_still_valid(
    t: Tx, conversation: ConversationId, session: Session, known: ContextPosition
) -> bool:
    return known.session_id == session.id and known.entry_id == _find_entry_id(
        t, conversation, known.seq
    )


def _find_entry_id(t: Tx, conversation: ConversationId, seq: int) -> str | None:
    return t.fetch_value(
        "SELECT id FROM entry WHERE conversation_id = $1 AND seq = $2", conversation, seq
    )


def read_head_context(t: Tx, conversation: ConversationId) -> Context:
    """
    Return the context of the current session.

    :raises NotFound: if there is no such conversation
    """
    session = get_head(t, conversation)
    base = get_base(t, session.id)
    last_seq = _read_last_seq(t, conversation)
    return Context(
        session=session,
        last_seq=last_seq,
        messages=expand_base(
            t, conversation, extend_base(base, opened_seq=session.opened_seq, last_seq=last_seq)
        ),
    )


def _read_last_seq(t: Tx, conversation: ConversationId) -> int:
    found = t.fetch_value("SELECT last_seq FROM lease WHERE conversation_id = $1", conversation)
    if found is None:
        raise NotFound("conversation", conversation)
    return found


def expand_base(t: Tx, conversation: ConversationId, base: Base) -> tuple[ContextMessage, ...]:
    """Return the messages of a base, in order."""
    messages: list[ContextMessage] = []
    for item in base:
        if isinstance(item, EntryRange):
            messages += read_messages(t, conversation, first=item.first, last=item.last)
        else:
            messages.append(ContextMessage(seq=None, format=item.format, message=item.message))
    return tuple(messages)


def read_messages(
    t: Tx, conversation: ConversationId, *, first: int, last: int
) -> list[ContextMessage]:
    """
    Return the messages of ``first..last``, without attempts and events.

    This is the one place where a context gets them, so that none has what was forgotten.
    """
    found: list[Row] = t.fetch_all(
        """
        SELECT e.seq, e.format, COALESCE(r.message, e.message) FROM entry e
        LEFT JOIN entry_redaction r ON r.conversation_id = e.conversation_id AND r.seq = e.seq
        WHERE e.conversation_id = $1 AND e.seq BETWEEN $2 AND $3 AND e.kind = $4 ORDER BY e.seq
        """,
        conversation,
        first,
        last,
        EntryKind.MESSAGE.value,
    )
    return [ContextMessage(seq=seq, format=form, message=message) for seq, form, message in found]


def build_base_at(t: Tx, conversation: ConversationId, seq: int) -> Base:
    """
    Return the whole context right after entry ``seq`` as a base; 0 is the beginning.

    Read from the session in which that entry was appended, so that a point before a
    compaction yields the original messages, not their summary. Messages that a rewind
    removed there stay out.
    """
    if (rewound := _find_rewind_session(t, conversation, seq)) is not None:
        return merge_ranges(get_base(t, rewound))
    row = t.fetch_one(
        """
        SELECT id, opened_seq FROM session
        WHERE conversation_id = $1 AND opened_seq < $2 AND id = (
            SELECT session_id FROM entry WHERE conversation_id = $1 AND seq = $2
        )
        """,
        conversation,
        seq,
    )
    if row is None:
        return _initial_base(t, conversation)
    session, opened_seq = row
    return extend_base(get_base(t, session), opened_seq=opened_seq, last_seq=seq)


def _find_rewind_session(t: Tx, conversation: ConversationId, seq: int) -> SessionId | None:
    """Return the last session opened by a rewind with no entry between ``seq`` and itself."""
    rows = t.fetch_all(
        """
        SELECT predecessor, id, opened_by FROM session
        WHERE conversation_id = $1 AND opened_seq = $2 AND predecessor IS NOT NULL
        """,
        conversation,
        seq,
    )
    # Sessions at one seq form a chain; their times may be equal.
    after = {before: (session, reason) for before, session, reason in rows}
    ids = {session for _, session, _ in rows}
    found, at = None, next((before for before in after if before not in ids), None)
    while at in after:
        at, reason = after[at]
        if reason == REWIND:
            found = at
    return found


def _initial_base(t: Tx, conversation: ConversationId) -> Base:
    first = t.fetch_value(
        "SELECT id FROM session WHERE conversation_id = $1 AND predecessor IS NULL", conversation
    )
    return () if first is None else get_base(t, first)


def build_session_base(t: Tx, session: SessionId) -> Base:
    """Return the whole context of a session as a base: its own base plus its entries."""
    found = get_session(t, session)
    last_seq = t.fetch_value("SELECT opened_seq FROM session WHERE predecessor = $1", session)
    if last_seq is None:
        last_seq = _read_last_seq(t, found.conversation_id)
    return extend_base(get_base(t, session), opened_seq=found.opened_seq, last_seq=last_seq)
