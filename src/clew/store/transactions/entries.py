"""Entries: appending to the log, and reading it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.clock import from_millis
from clew.core.entry import GENESIS, Entry, NewEntry, chain_hash
from clew.errors import SessionEnded, StoreError
from clew.store.transactions import rows
from clew.store.transactions.leases import reserve_seqs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.ids import ConversationId, EntryId, SessionId, TurnId
    from clew.core.lease import Lease
    from clew.core.turn import Turn
    from clew.store.contract import Tx

_as_json = json.JSONEncoder(separators=(",", ":")).encode


def append_entries(
    t: Tx,
    lease: Lease,
    session: SessionId,
    drafts: Sequence[NewEntry],
    *,
    turn: TurnId | None = None,
) -> list[Entry]:
    """
    Append to the head session, all or nothing, and return the entries with their numbers.

    Repeating it with the same entry ids appends nothing and returns the first entries.

    :raises StoreError: if only some of the ids are stored already: nothing was appended
    :raises LeaseLost: if the lease is not held any more
    :raises SessionEnded: if the session takes no more entries; names the head
    """
    if not drafts:
        return []
    if not reserve_seqs(t, lease, len(drafts), unless=drafts[0].id):
        return _read_stored(t, drafts)
    seq, prev_hash = _read_log_end(t, lease.conversation_id, session, taken=len(drafts))
    entries: list[Entry] = []
    for draft in drafts:
        seq += 1
        entry = _insert_entry(t, lease.conversation_id, seq, draft, session, turn, prev_hash)
        prev_hash = entry.hash
        entries.append(entry)
    t.notify(lease.conversation_id)
    return entries


def _read_stored(t: Tx, drafts: Sequence[NewEntry]) -> list[Entry]:
    first = t.fetch_one("SELECT conversation_id, seq FROM entry WHERE id = $1", drafts[0].id)
    assert first is not None
    conversation, seq = first
    found = read_entries(t, conversation, first=seq, last=seq + len(drafts) - 1)
    if [entry.id for entry in found] != [draft.id for draft in drafts]:
        raise StoreError(f"entry {drafts[0].id} was stored together with others than now")
    return found


def _read_log_end(
    t: Tx, conversation: ConversationId, session: SessionId, *, taken: int
) -> tuple[int, bytes]:
    """
    Return the last seq before the ``taken`` numbers, and the hash of its entry.

    :raises SessionEnded: if the session is not the open head
    """
    # The lease row is locked already, and ending a session needs the same lock.
    row = t.fetch_one(
        """
        SELECT h.session_id, s.ended_at, l.last_seq, e.hash
        FROM head h
        JOIN session s ON s.id = h.session_id
        JOIN lease l ON l.conversation_id = $1
        LEFT JOIN entry e ON e.conversation_id = $1 AND e.seq = l.last_seq - $2
        WHERE h.conversation_id = $1
        """,
        conversation,
        taken,
    )
    assert row is not None
    head, ended_at, last_seq, last_hash = row
    if head != session or ended_at is not None:
        raise SessionEnded(session, head=head)
    return last_seq - taken, GENESIS if last_hash is None else bytes(last_hash)


def find_entry_seq(t: Tx, entry: EntryId) -> int | None:
    """Return the seq of a stored entry; ``None`` if the id is unknown."""
    return t.fetch_value("SELECT seq FROM entry WHERE id = $1", entry)


def get_entry_hash(t: Tx, conversation: ConversationId, seq: int) -> bytes:
    """Return the hash of one entry; ``GENESIS`` for seq 0."""
    found = t.fetch_value(
        "SELECT hash FROM entry WHERE conversation_id = $1 AND seq = $2", conversation, seq
    )
    return GENESIS if found is None else bytes(found)


def _insert_entry(
    t: Tx,
    conversation: ConversationId,
    seq: int,
    draft: NewEntry,
    session: SessionId,
    turn: TurnId | None,
    prev_hash: bytes,
) -> Entry:
    fields = (
        conversation,
        seq,
        draft.id,
        session,
        turn,
        draft.kind.value,
        None if draft.role is None else draft.role.value,
        draft.text,
        _as_json(draft.calls) if draft.calls else "[]",
        _as_json(draft.answers) if draft.answers else "[]",
        draft.format,
        draft.message,
        t.now,
    )
    hashed = chain_hash(prev_hash, fields)
    t.execute(
        """
        INSERT INTO entry (conversation_id, seq, id, session_id, turn_id, kind, role, text, calls,
                           answers, format, message, created_at, prev_hash, hash)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
        """,
        *fields,
        prev_hash,
        hashed,
    )
    return Entry(
        conversation_id=conversation,
        seq=seq,
        id=draft.id,
        session_id=session,
        turn_id=turn,
        kind=draft.kind,
        role=draft.role,
        text=draft.text,
        calls=draft.calls,
        answers=draft.answers,
        format=draft.format,
        message=draft.message,
        created_at=from_millis(t.now),
        prev_hash=prev_hash,
        hash=hashed,
    )


def read_entries(t: Tx, conversation: ConversationId, *, first: int, last: int) -> list[Entry]:
    """Return the entries ``first..last``, both included, in order."""
    return rows.ENTRY.fetch_all(
        t,
        "WHERE conversation_id = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq",
        conversation,
        first,
        last,
    )


def find_tool_answer(t: Tx, conversation: ConversationId, call_id: str) -> str | None:
    """
    Return the newest message that answers a tool call; ``None`` if there is none.

    It is as contexts have it: without what was forgotten.
    """
    seq = find_answer_seq(t, conversation, call_id)
    if seq is None:
        return None
    return t.fetch_value(
        """
        SELECT COALESCE(r.message, e.message) FROM entry e
        LEFT JOIN entry_redaction r ON r.conversation_id = e.conversation_id AND r.seq = e.seq
        WHERE e.conversation_id = $1 AND e.seq = $2
        """,
        conversation,
        seq,
    )


def is_answer_redacted(t: Tx, conversation: ConversationId, call_id: str) -> bool:
    """Return whether the answer to a tool call had something that was forgotten."""
    return t.exists(
        "SELECT 1 FROM entry_redaction WHERE conversation_id = $1 AND seq = $2",
        conversation,
        find_answer_seq(t, conversation, call_id) or 0,
    )


def find_answer_seq(t: Tx, conversation: ConversationId, call_id: str) -> int | None:
    """Return the place of the newest message that answers a tool call, if there is one."""
    found = t.fetch_map(
        "SELECT seq, answers FROM entry WHERE conversation_id = $1 AND answers <> '[]'",
        conversation,
    )
    return max(
        (seq for seq, answers in found.items() if call_id in json.loads(answers)), default=None
    )


def read_entries_after(
    t: Tx, conversation: ConversationId, *, after: int, limit: int
) -> list[Entry]:
    """Return at most ``limit`` entries whose seq is above ``after``, in order."""
    return rows.ENTRY.fetch_all(
        t,
        "WHERE conversation_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
        conversation,
        after,
        limit,
    )


def read_entries_before(
    t: Tx, conversation: ConversationId, *, before: int, limit: int
) -> list[Entry]:
    """Return the last ``limit`` entries whose seq is below ``before``, in order."""
    found = rows.ENTRY.fetch_all(
        t,
        "WHERE conversation_id = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3",
        conversation,
        before,
        limit,
    )
    return found[::-1]


def read_turn_end(t: Tx, turn: Turn) -> list[Entry]:
    """Return the events of a turn and its last message, in order."""
    return rows.ENTRY.fetch_all(
        t,
        """
        WHERE conversation_id = $1 AND seq >= $2 AND turn_id = $3 AND (kind = 'event' OR seq = (
            SELECT max(seq) FROM entry
            WHERE conversation_id = $1 AND seq >= $2 AND turn_id = $3 AND kind = 'message'
        ))
        ORDER BY seq
        """,
        turn.conversation_id,
        turn.first_seq,
        turn.id,
    )


def read_assistant_texts(t: Tx, turn: Turn) -> list[str]:
    """Return the assistant's texts in a turn, in order."""
    return t.fetch_column(
        """
        SELECT text FROM entry
        WHERE conversation_id = $1 AND seq >= $2 AND turn_id = $3 AND kind = 'message'
              AND role = 'assistant'
        ORDER BY seq
        """,
        turn.conversation_id,
        turn.first_seq,
        turn.id,
    )
