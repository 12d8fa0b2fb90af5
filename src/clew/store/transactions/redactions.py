"""Texts that a person has had forgotten: contexts go on without them, the log stays as it is."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clew.core import session as reasons
from clew.core.forgotten_text import Redaction
from clew.core.ids import ConversationId, InboxId
from clew.core.inbox import FORGET_COMMAND
from clew.core.session import Head
from clew.core.session_base import extend_base
from clew.record import replace
from clew.store.transactions import inbox, leases
from clew.store.transactions.redacted_messages import make_pattern, redact_stored
from clew.store.transactions.sessions import (
    end_session,
    find_session_by_operation,
    get_base,
    get_head,
    rotate_session,
)
from clew.store.transactions.undelete import list_restorable, replace_restored_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from clew.core.ids import SessionIdFactory
    from clew.core.inbox import InboxItem
    from clew.core.lease import Lease
    from clew.core.scope import Scope
    from clew.core.session import Session
    from clew.store.contract import Tx


def redact_contexts(
    t: Tx,
    wanted: Redaction,
    *,
    entries: Mapping[ConversationId, Sequence[int]],
    scopes: Sequence[Scope | None],
    name: str,
    session_ids: SessionIdFactory,
) -> list[ConversationId]:
    """
    Have no context that is read from now on contain some texts; return the sessions that had one.

    Current sessions that were told one are replaced once their turns have ended, and those of
    deleted conversations at once. ``entries`` are those whose whole text goes; ``scopes``:
    ``None`` for all. ``name`` makes the ids of what is queued.
    """
    told = dict.fromkeys(
        found
        for scope in scopes
        for text in (*wanted.texts, *wanted.marks)
        for found in _list_holders(t, text, scope=scope)
    )
    busy = dict.fromkeys(found for scope in scopes for found in _list_busy(t, scope))
    changed = [
        found
        for scope in scopes
        for found in redact_stored(t, wanted, entries=entries, scope=scope)
    ]
    restorable = dict.fromkeys(found for scope in scopes for found in list_restorable(t, scope))
    for conversation in restorable.keys() & {*told, *changed}:
        replace_restored_session(t, conversation, name=name, session_ids=session_ids)
    told = {one: None for one in (*told, *changed) if _is_there(t, one)}
    for conversation in told | busy:
        own = replace(wanted, entries=tuple(entries.get(conversation, ())))
        queue_redaction(
            t, conversation, own, id=_make_id(name, conversation), session_ids=session_ids
        )
    return [*told]


def _is_there(t: Tx, conversation: ConversationId) -> bool:
    return t.exists("SELECT 1 FROM head WHERE conversation_id = $1", conversation)


def _make_id(name: str, conversation: ConversationId) -> InboxId:
    return InboxId(f"inb_{hashlib.sha256(f'{name} {conversation}'.encode()).hexdigest()[:28]}")


def queue_redaction(
    t: Tx,
    conversation: ConversationId,
    wanted: Redaction,
    *,
    id: InboxId,
    session_ids: SessionIdFactory,
) -> None:
    """Have a conversation begin a session without some texts, once its turn has ended."""
    payload = json.dumps(asdict(wanted), ensure_ascii=False)
    inbox.accept_own_command(
        t, conversation, FORGET_COMMAND, id=id, session_ids=session_ids, payload=payload
    )


def _list_holders(t: Tx, text: str, *, scope: Scope | None) -> list[ConversationId]:
    """
    Return the conversations whose instructions or context may have a text.

    Deleted ones that can be restored count. ``scope``: ``None`` for those of all.
    """
    return t.fetch_column(
        """
        SELECT s.conversation_id FROM session s
        JOIN conversation c ON c.id = s.conversation_id
            AND (c.deleting_at IS NULL OR c.undo_until > $3)
        WHERE ($2 = '' OR c.scope = $2)
        AND NOT EXISTS (SELECT 1 FROM session n WHERE n.predecessor = s.id)
        AND (
            s.instructions LIKE $1
            OR EXISTS (
                SELECT 1 FROM entry e WHERE e.conversation_id = c.id AND e.seq > s.opened_seq
                    AND e.message LIKE $1
            )
            OR EXISTS (SELECT 1 FROM base_item b WHERE b.session_id = s.id AND b.message LIKE $1)
            OR EXISTS (
                SELECT 1 FROM base_item b JOIN entry e
                    ON e.conversation_id = c.id AND e.seq BETWEEN b.first_seq AND b.last_seq
                WHERE b.session_id = s.id AND e.message LIKE $1
            )
        )
        ORDER BY 1
        """,
        make_pattern(text),
        scope or "",
        t.now,
    )


def _list_busy(t: Tx, scope: Scope | None) -> list[ConversationId]:
    """Return the conversations in whose turns a text may be that is not stored yet."""
    return t.fetch_column(
        """
        SELECT DISTINCT u.conversation_id FROM turn u
        JOIN conversation c ON c.id = u.conversation_id AND c.deleting_at IS NULL
        WHERE u.state <> 'done' AND ($1 = '' OR c.scope = $1) ORDER BY 1
        """,
        scope or "",
    )


def take_wanted(t: Tx, item: InboxItem) -> Redaction:
    """Return what a queued command asks for, and erase that from it."""
    wanted = _load_wanted(item.payload)
    _erase_payload(t, item.id)
    return wanted


def _load_wanted(payload: str) -> Redaction:
    given: dict[str, Any] = json.loads(payload)
    return Redaction(**{name: tuple(value) for name, value in given.items()})


def _erase_payload(t: Tx, item: str) -> None:
    t.execute("UPDATE inbox SET payload = '{}' WHERE id = $1", item)


def redact_context(
    t: Tx, lease: Lease, wanted: Redaction, *, operation: str, session_ids: SessionIdFactory
) -> Session | None:
    """
    Open a session that is not told the texts, also where a turn has stored them since.

    Repeating it with the same ``operation`` returns the same session. A closed conversation
    stays closed, and is continued from a session without them; then ``None`` is returned.

    :raises LeaseLost: if the lease is not held any more
    """
    if (done := find_session_by_operation(t, operation)) is not None:
        return done if done.is_open else None
    last_seq = leases.verify_lease_for_write(t, lease)
    _redact_own(t, lease.conversation_id, wanted)
    head = get_head(t, lease.conversation_id)
    opened = rotate_session(
        t,
        lease,
        operation=operation,
        expected=Head(session=head.id, last_seq=last_seq),
        base=extend_base(get_base(t, head.id), opened_seq=head.opened_seq, last_seq=last_seq),
        reason=reasons.FORGET,
        session_ids=session_ids,
    )
    # Its predecessor has ended now: a replay must not send what it was told.
    _redact_own(t, lease.conversation_id, wanted)
    if head.end_reason is None:
        return opened
    end_session(t, opened.id, head.end_reason)
    return None


def _redact_own(t: Tx, conversation: ConversationId, wanted: Redaction) -> None:
    redact_stored(t, wanted, entries={conversation: wanted.entries}, conversation=conversation)


def apply_queued_redactions(t: Tx, conversation: ConversationId) -> bool:
    """Have contexts go on without what a turn has stored since it was forgotten; whether any."""
    waiting = _list_waiting(t, conversation)
    for _, payload in waiting:
        _redact_own(t, conversation, _load_wanted(payload))
    return bool(waiting)


def finish_queued_redactions(
    t: Tx, conversation: ConversationId, *, session_ids: SessionIdFactory
) -> None:
    """Do in a conversation that was just deleted what is queued: it may be restored."""
    waiting = _list_waiting(t, conversation)
    if not waiting:
        return
    replace_restored_session(t, conversation, name=waiting[-1][0], session_ids=session_ids)
    apply_queued_redactions(t, conversation)
    _erase_all(t, (item for item, _ in waiting))


def _erase_all(t: Tx, items: Iterable[str]) -> None:
    for item in items:
        _erase_payload(t, item)


def _list_waiting(t: Tx, conversation: ConversationId) -> list[tuple[str, str]]:
    return t.fetch_all(
        """
        SELECT id, payload FROM inbox
        WHERE conversation_id = $1 AND kind = 'command' AND text = $2 AND outcome IS NULL
        ORDER BY n
        """,
        conversation,
        FORGET_COMMAND,
    )
